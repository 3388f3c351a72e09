import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";

/**
 * Checksums of a store's database and WAL, taken by another process: reading them here would cancel the locks that
 * SQLite holds in this process.
 */
export function checksums(path: string): string {
  const files = [path, `${path}-wal`].filter((file) => existsSync(file));
  const { status, stdout } = spawnSync("cksum", files, { encoding: "utf8" });
  if (status !== 0) throw new Error(`cksum ended with ${status}.`);
  return stdout;
}

/** Where the kernel tells of locks. */
const lockTable = "/proc/locks";
export const hasLockTable: boolean = existsSync(lockTable);

/** How many locks this process holds on the file. */
export function lockCount(path: string): number {
  const { ino } = statSync(path, { bigint: true });
  return readFileSync(lockTable, "utf8")
    .split("\n")
    .filter((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `)).length;
}
