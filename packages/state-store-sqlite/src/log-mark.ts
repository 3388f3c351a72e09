/**
 * Which database a log was written for. SQLite lays whatever log it finds over whatever database stands beside it: where a
 * backup was moved over a store that somebody had open, or that a crash left with its log, rows of two files become one
 * page after another. So each opening notes which two files belong together, and a log that is still there beside another
 * database is refused.
 *
 * A database that was copied into the old file, under its old name, is told by what it begins with: another store always,
 * an older copy of this one where page 1 was written since. A note that is missing, torn or of other files refuses nothing.
 */
import { closeSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import type { Random } from "@turnkeeper/kernel";
import { isOtherFile } from "./file-header.ts";
import type { FileHeader } from "./file-header.ts";
import { codeOf } from "./store-failure.ts";

interface Mark {
  readonly database: string;
  readonly log: string;
  /** What the database began with when it was noted; absent in notes of earlier releases. */
  readonly header?: FileHeader;
}

/** The time at which it was made tells a file from a later one with the same number. */
function nodeOf(path: string): { readonly key: string; readonly size: bigint } | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && { key: `${stats.dev}:${stats.ino}:${stats.birthtimeNs}`, size: stats.size };
}

function markOf(path: string): string {
  return `${path}-mark`;
}

function read(path: string): Partial<Mark> {
  try {
    return JSON.parse(readFileSync(markOf(path), "utf8")) as Partial<Mark>;
  } catch (error) {
    if (error instanceof SyntaxError || codeOf(error) === "ENOENT") return {};
    throw error;
  }
}

/** Whether a log with rows lies beside the database at the path. */
export function hasRows(path: string): boolean {
  return (nodeOf(`${path}-wal`)?.size ?? 0n) > 0n;
}

/** Whether the log at the path belongs to a database that does not stand there any more; `header`: of the one that does. */
export function isForeignLog(path: string, header: FileHeader | undefined): boolean {
  const log = nodeOf(`${path}-wal`);
  const database = nodeOf(path);
  if (!log || log.size === 0n || !database) return false;
  const marked = read(path) ?? {};
  if (marked.log !== log.key) return false;
  if (marked.database !== database.key) return true;
  return header !== undefined && marked.header !== undefined && isOtherFile(marked.header, header);
}

/** Notes that the two files at the path belong together. To be called while SQLite holds both. */
export function markLog(path: string, header: FileHeader, random: Pick<Random, "id">): void {
  const mark: Mark = { database: nodeOf(path)?.key ?? "", log: nodeOf(`${path}-wal`)?.key ?? "", header };
  const text = JSON.stringify(mark);
  if (JSON.stringify(read(path)) === text) return;
  const made = `${markOf(path)}~${random.id()}`;
  const descriptor = openSync(made, "ax", 0o600);
  try {
    writeSync(descriptor, text);
  } finally {
    closeSync(descriptor);
  }
  renameSync(made, markOf(path));
}
