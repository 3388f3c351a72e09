/**
 * Which SQLite releases may write a WAL. Releases 3.7.0 to 3.51.2 can lose pages when two connections checkpoint
 * ("WAL-reset"); 3.51.3 fixed it, with backports to 3.50.7 and 3.44.6.
 */

export type JournalMode = "wal" | "delete";

const backports: ReadonlyMap<string, number> = new Map([
  ["3.50", 7],
  ["3.44", 6],
]);

/** Whether this SQLite release keeps a WAL intact; an unreadable version does not count as safe. */
export function isWalSafe(version: string): boolean {
  const [, majorText, minorText, patchText] = /^(\d+)\.(\d+)\.(\d+)/.exec(version) ?? [];
  if (majorText === undefined || minorText === undefined || patchText === undefined) return false;
  const [major, minor, patch] = [Number(majorText), Number(minorText), Number(patchText)];
  if (major !== 3) return major > 3;
  const backport = backports.get(`${major}.${minor}`);
  if (backport !== undefined && patch >= backport) return true;
  return minor > 51 || (minor === 51 && patch >= 3);
}

export interface JournalChoice {
  readonly mode: JournalMode;
  /** What the operator should know about the choice. */
  readonly note?: string;
}

/**
 * Chooses the journal of a store. A store keeps the mode that it has, since another process may have it open; an
 * unsafe release never turns a WAL on.
 */
export function chooseJournal(choice: {
  readonly version: string;
  readonly wanted: JournalMode;
  /** Absent for a store that is being made. */
  readonly onDisk?: JournalMode | undefined;
  /** The file system, where another kernel may work on it too. */
  readonly sharedFileSystem?: string | undefined;
}): JournalChoice {
  const { version, wanted, onDisk, sharedFileSystem } = choice;
  const isSafe = isWalSafe(version);
  const update = "Update better-sqlite3 to a release with SQLite 3.51.3 or newer.";
  if (onDisk === "wal" && !isSafe)
    return { mode: "wal", note: `SQLite ${version} can lose pages of this store's WAL, which it keeps. ${update}` };
  if (onDisk === "wal" && sharedFileSystem !== undefined)
    return {
      mode: "wal",
      note: `The store has a WAL and lies on ${sharedFileSystem}: a process of another machine that opens it corrupts it. Move it to a local disk.`,
    };
  if (onDisk === undefined && wanted === "wal" && sharedFileSystem !== undefined)
    return {
      mode: "delete",
      note: `The store lies on ${sharedFileSystem}, where a WAL can be corrupted by another machine, so it has a rollback journal: readers and writers wait for each other. A local disk is faster and safer.`,
    };
  if (onDisk !== undefined && onDisk !== wanted)
    return { mode: onDisk, note: `The store keeps its journal mode, ${onDisk}; ${wanted} applies to new stores.` };
  if (wanted === "wal" && !isSafe)
    return {
      mode: "delete",
      note: `SQLite ${version} can lose pages of a WAL, so this store has a rollback journal: readers and writers wait for each other. ${update}`,
    };
  return { mode: wanted };
}
