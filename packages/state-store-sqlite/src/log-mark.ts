/**
 * Which database a log was written for. SQLite lays whatever log it finds over whatever database stands beside it: where a
 * backup was moved over a store that somebody had open, or that a crash left with its log, rows of two files become one
 * page after another. So each opening notes which two files belong together, and a log that is still there beside another
 * database is refused.
 *
 * Only by what a look at names tells, since a file of a store is never opened here: a database that was copied into the old
 * file, under its old name, is not noticed. A note that is missing, torn or of other files refuses nothing.
 */
import { closeSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import type { Random } from "@turnkeeper/kernel";
import { codeOf } from "./store-failure.ts";

interface Pair {
  readonly database: string;
  readonly log: string;
}

/** The time at which it was made tells a file from a later one with the same number. */
function nodeOf(path: string): { readonly key: string; readonly size: bigint } | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && { key: `${stats.dev}:${stats.ino}:${stats.birthtimeNs}`, size: stats.size };
}

function markOf(path: string): string {
  return `${path}-mark`;
}

function read(path: string): Partial<Pair> {
  try {
    return JSON.parse(readFileSync(markOf(path), "utf8")) as Partial<Pair>;
  } catch (error) {
    if (error instanceof SyntaxError || codeOf(error) === "ENOENT") return {};
    throw error;
  }
}

/** Whether the log at the path belongs to a database that does not stand there any more. */
export function isForeignLog(path: string): boolean {
  const log = nodeOf(`${path}-wal`);
  const database = nodeOf(path);
  if (!log || log.size === 0n || !database) return false;
  const marked = read(path) ?? {};
  return marked.log === log.key && marked.database !== database.key;
}

/** Notes that the two files at the path belong together. To be called while SQLite holds both. */
export function markLog(path: string, random: Pick<Random, "id">): void {
  const pair: Pair = { database: nodeOf(path)?.key ?? "", log: nodeOf(`${path}-wal`)?.key ?? "" };
  const marked = read(path) ?? {};
  if (marked.database === pair.database && marked.log === pair.log) return;
  const made = `${markOf(path)}~${random.id()}`;
  const descriptor = openSync(made, "ax", 0o600);
  try {
    writeSync(descriptor, JSON.stringify(pair));
  } finally {
    closeSync(descriptor);
  }
  renameSync(made, markOf(path));
}
