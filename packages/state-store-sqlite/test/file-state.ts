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

/** Readings of the table: the kernel tells it in pieces, and what others lock and free in between moves the rest. */
const readings = 16;

/** How many locks this process holds on the file: each that any reading tells of, as one may pass it over, or tell it twice. */
export function lockCount(path: string): number {
  const { ino } = statSync(path, { bigint: true });
  const told = new Set<string>();
  for (let reading = 0; reading < readings; reading++)
    for (const line of readFileSync(lockTable, "utf8").split("\n"))
      if (line.includes(` ${process.pid} `) && line.includes(`:${ino} `)) told.add(line.replace(/^\d+: /, ""));
  return told.size;
}
