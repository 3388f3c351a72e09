import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { Connection } from "./connection.ts";
import { FileAnchor } from "./file-anchor.ts";
import { headerBytes, headerIn } from "./file-header.ts";
import type { FileHeader } from "./file-header.ts";
import { hasRows, isForeignLog, markLog } from "./log-mark.ts";
import { hasLog, logRemover } from "./log-remover.ts";
import { migrate, newestSchemaVersion, schemaVersion } from "./migrations.ts";
import { sharedFileSystem } from "./file-system.ts";
import type { ResolvedSqliteStoreOptions } from "./options.ts";
import { SharedDatabase } from "./shared-database.ts";
import { chooseJournal } from "./sqlite-version.ts";
import type { JournalMode } from "./sqlite-version.ts";
import { busyError, changedError, codeOf, explain, foreignLogError, isBusy } from "./store-failure.ts";
import type { FailedCall } from "./store-failure.ts";
import { fileKey, StoreGuard } from "./store-guard.ts";
import { closeToOthers } from "./store-path.ts";

/** Opening waits as long as any ordinary call. */
const patienceMs = 20_000;
const longestPauseMs = 64;

async function withPatience<T>(host: Host, call: FailedCall, attempt: () => T): Promise<T> {
  const sinceMs = host.clock.monotonicMs();
  for (let pauseCount = 0; ; pauseCount++) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
    }
    const waitedMs = host.clock.monotonicMs() - sinceMs;
    if (waitedMs >= patienceMs) throw busyError(call, waitedMs);
    const pauseMs = host.random.unit() * Math.min(2 ** pauseCount, longestPauseMs);
    await new Promise<void>((resolve) => void host.timers.after(pauseMs, resolve));
  }
}

function journalOf(rows: Connection): JournalMode {
  return rows.pragma("journal_mode") === "wal" ? "wal" : "delete";
}

/** Answers the mode that SQLite really uses: some file systems refuse a WAL without an error. */
function setJournal(writer: Connection, mode: JournalMode): JournalMode {
  if (journalOf(writer) !== mode) writer.pragma(`journal_mode = ${mode}`);
  return journalOf(writer);
}

/** What a read-only file refuses. A lock of somebody else's shows that it can be written. */
function proveWritable(writer: Connection): void {
  try {
    writer.begin("normal");
    writer.rollback();
  } catch (error) {
    if (!isBusy(error)) throw error;
  }
}

function headerOf(anchor: FileAnchor | undefined): FileHeader | undefined {
  const header = anchor && headerIn(anchor.head());
  // SQLite says what is wrong with a file that is none.
  return typeof header === "string" ? undefined : header;
}

const noMark =
  "There is no room to note which log belongs to this file, so that a log would be replayed onto another one that is moved over it.";

/** Answers whether it could be noted: a full disk keeps nobody from a store. */
function tryToMark(path: string, header: FileHeader, { random }: Host): boolean {
  try {
    markLog(path, header, random);
    return true;
  } catch (error) {
    if (/^(ENOSPC|EDQUOT)$/.test(codeOf(error))) return false;
    throw error;
  }
}

/**
 * Opens both connections of a file and brings its schema up to date. The reader comes first and only reads, so that a
 * newer or a foreign file is refused untouched; it stays open as the pin that holds the WAL. What fails leaves
 * nothing open: the writer is closed while the reader still holds the file, so nothing is checkpointed.
 */
export async function openDatabase(
  path: string,
  host: Host,
  options: ResolvedSqliteStoreOptions,
): Promise<SharedDatabase> {
  const call: FailedCall = { attempt: "open", path, phase: "open" };
  const before = fileKey(path);
  const hadLog = hasLog(path);
  const opened: Connection[] = [];
  let guard: StoreGuard | undefined;
  let anchor: FileAnchor | undefined;
  const open = (access: "read" | "write"): Connection => {
    const connection = new Connection(path, access);
    opened.unshift(connection);
    return connection;
  };
  try {
    // Kept open from here on: to close it would cancel the locks that SQLite takes meanwhile.
    if (hasRows(path)) anchor = new FileAnchor(path, headerBytes);
    if (isForeignLog(path, headerOf(anchor))) throw foreignLogError(path);
    const reader = open("read");
    const { version, onDisk } = await withPatience(host, call, () => ({
      version: schemaVersion(reader, path),
      onDisk: journalOf(reader),
    }));
    // Only now is it known to be ours to change.
    const notes = closeToOthers(path);
    const sqliteVersion = reader.get<{ version: string }>("SELECT sqlite_version() AS version")?.version ?? "";
    const choice = chooseJournal({
      version: sqliteVersion,
      wanted: options.journalMode,
      onDisk: version === 0 ? undefined : onDisk,
      sharedFileSystem: sharedFileSystem(path),
    });
    const writer = open("write");
    const journalMode = await withPatience(host, call, () => setJournal(writer, choice.mode));
    const isCurrent = version === newestSchemaVersion();
    const migrated = isCurrent ? version : await withPatience(host, call, () => migrate(writer, path, host.random));
    if (isCurrent) proveWritable(writer);
    // A read under the WAL takes the lock that the reader keeps: from here on the -wal cannot be changed for another.
    await withPatience(host, call, () => schemaVersion(reader, path));
    anchor ??= new FileAnchor(path, headerBytes);
    guard = StoreGuard.on(path, journalMode === "wal", anchor);
    if (!guard || fileKey(path) !== before) throw changedError("replaced", call);
    const kept = guard;
    const noteLog = (): boolean => journalMode !== "wal" || tryToMark(path, kept.header, host);
    if (!noteLog()) notes.push(noMark);
    if (journalMode !== choice.mode)
      notes.push(
        `Journal mode ${choice.mode} was refused by SQLite for this file system; the store uses ${journalMode}.`,
      );
    if (!guard.seesLocks)
      notes.push("The kernel does not tell which locks this process holds, so that losing them would not be noticed.");
    const file = {
      path,
      journalMode,
      sqliteVersion,
      schemaVersion: migrated,
      notes: choice.note === undefined ? notes : [choice.note, ...notes],
    };
    return new SharedDatabase({ file, reader, writer, guard, noteLog });
  } catch (error) {
    const isRefused = CodedError.is(error) && opened.length === 1;
    const remover = isRefused && !hadLog ? logRemover(path) : undefined;
    for (const connection of opened) connection.close();
    remover?.close();
    if (guard) guard.end();
    else anchor?.close();
    throw explain(error, call);
  }
}
