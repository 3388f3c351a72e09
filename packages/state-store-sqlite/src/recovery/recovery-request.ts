/** What a recovery is asked for, and when it is refused; whatever is refused has not been touched. */
import { existsSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { storeError } from "../store-failure.ts";
import { processesWith } from "./open-processes.ts";
import { existsError, partialPathOf } from "./partial-output.ts";

export interface RecoveryRequest {
  readonly source: string;
  readonly output: string;
}

/** Beyond what is written, so that a nearly full disk does not become a full one. */
const headroomBytes = 64 * 1024 * 1024;

function sidesOf(path: string): string[] {
  return [path, `${path}-wal`, `${path}-shm`, `${path}-journal`];
}

export function refuseOpen(source: string): string[] {
  const open = processesWith(sidesOf(source));
  if (!open)
    return ["This platform does not tell which processes have a file open: make sure that none has the store."];
  if (open.length === 0) return [];
  throw storeError(
    "STORE_BUSY",
    `Could not recover the store ${source}: ${open.map(({ name }) => name).join(", ")} still has it open. Nothing was touched; end it (kill ${open.map(({ pid }) => pid).join(" ")}) and repeat.`,
    { path: source, pids: open.map(({ pid }) => pid) },
  );
}

export function refuseUnfit({ source, output }: RecoveryRequest): void {
  const stats = statSync(source, { throwIfNoEntry: false });
  if (stats && !stats.isFile())
    throw storeError(
      "STORE_UNAVAILABLE",
      `Could not recover ${source}: it is not a regular file. Nothing was touched.`,
      {
        path: source,
      },
    );
  if (!stats && !existsSync(`${source}-wal`))
    throw storeError("STORE_UNAVAILABLE", `Could not recover ${source}: there is no such file.`, { path: source });
  const sides = sidesOf(source);
  if (sidesOf(output).some((path) => sides.includes(path)))
    throw storeError("STORE_UNAVAILABLE", `Could not recover ${source} onto itself: name an output of its own.`, {
      path: source,
    });
  const taken = [...sidesOf(output), `${output}-spool`, partialPathOf(output)].find((path) => existsSync(path));
  if (taken !== undefined) throw existsError(taken);
}

export function refuseFull(output: string, byteCount: number): void {
  const { bavail, bsize } = statfsSync(dirname(output));
  const wanted = byteCount + headroomBytes;
  if (bavail * bsize < wanted)
    throw storeError(
      "STORE_FULL",
      `Could not recover into ${output}: it takes about ${Math.ceil(wanted / 1_000_000)} MB and the disk has ${Math.floor((bavail * bsize) / 1_000_000)} MB left. Nothing was touched; name an output on another disk.`,
      { path: output },
    );
}

/** Whoever wrote meanwhile came after the look at who has the file open. */
export function changedError(source: string): Error {
  return storeError(
    "STORE_BUSY",
    `Could not recover the store ${source}: something wrote to it meanwhile. Nothing was made; end every process that uses it and repeat.`,
    { path: source },
  );
}
