import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";

/**
 * Checksums of a store's database and WAL, taken by another process: reading them here would cancel the locks that
 * SQLite holds in this process.
 */
export function checksums(path: string): string {
  for (;;) {
    const files = [path, `${path}-wal`].filter((file) => existsSync(file));
    const { status, stdout, stderr } = spawnSync("cksum", files, { encoding: "utf8" });
    if (status === 0) return stdout;
    // An ending process may take its WAL away between the look and the reading; then the rest is read again.
    if (files.every((file) => existsSync(file))) throw new Error(`cksum ended with ${status}: ${stderr}`);
  }
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
