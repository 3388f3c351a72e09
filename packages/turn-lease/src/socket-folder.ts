import { chmod, mkdir, readdir, realpath, stat, unlink, utimes } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Host } from "@turnkeeper/kernel";
import { askLiveness } from "./liveness-socket.ts";

/** The longest path a unix socket can have on Linux. */
const pathBytesMax = 107;
const suffix = ".sock";
/** How long the socket of a dead instance stays: leases that name it are reclaimed through it until then. */
const sweepAfterMs = 86_400_000;

/** Takes the folder from everybody else, unless it holds other files: no shared folder becomes private by a mistaken option. */
async function makePrivate(folder: string): Promise<void> {
  if (((await stat(folder)).mode & 0o077) === 0) return;
  const other = (await readdir(folder)).find((name) => !name.endsWith(suffix));
  if (other !== undefined)
    throw new Error(`The folder ${folder} is open to others and holds ${other}; sockets need a folder of their own.`);
  await chmod(folder, 0o700);
}

/** Makes the folder private, and answers where the socket of this instance belongs. Rejects where it cannot have one. */
export async function prepareSocketFolder(
  folder: string,
  instanceId: string,
): Promise<{ readonly path: string; readonly key: string }> {
  const path = join(resolve(folder), `${instanceId}${suffix}`);
  const byteCount = Buffer.byteLength(path);
  if (byteCount > pathBytesMax)
    throw new Error(`The socket path ${path} has ${byteCount} bytes; the kernel takes ${pathBytesMax}.`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await makePrivate(folder);
  return { path, key: await realpath(folder) };
}

/**
 * Removes sockets of instances that died more than a day ago. Never one that a lease may still name: the first sweep
 * that finds a socket refused only marks it (modification time zero, access time now), a later one removes it.
 */
export async function sweepSocketFolder(
  { clock, timers }: Host,
  folder: string,
  ownPath: string,
  isWanted: () => boolean,
): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!isWanted()) return;
    const path = join(resolve(folder), name);
    if (!name.endsWith(suffix) || path === ownPath) continue;
    if ((await askLiveness(timers, path, {})).kind !== "refused") continue;
    const { mtimeMs, atimeMs } = await stat(path);
    const nowMs = clock.wallMs();
    if (mtimeMs !== 0) await utimes(path, nowMs / 1_000, 0);
    else if (nowMs - atimeMs > sweepAfterMs) await unlink(path);
  }
}
