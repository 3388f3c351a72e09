import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { StateStore, StoreErrorCode } from "@turnkeeper/state-store";
import { openDatabase } from "./open-database.ts";
import { resolveSqliteStoreOptions } from "./options.ts";
import type { SqliteStoreOptions } from "./options.ts";
import { acquireDatabase } from "./registry.ts";
import type { Holding } from "./registry.ts";
import type { SharedDatabase, StoreFile } from "./shared-database.ts";
import { SqliteInbox } from "./sqlite-inbox.ts";
import { SqliteLeases } from "./sqlite-leases.ts";
import { SpoolFolder } from "./spool-folder.ts";
import type { SpoolReserve } from "./spool-reserve.ts";
import { SqliteSessions } from "./sqlite-sessions.ts";
import { SqliteSpool } from "./sqlite-spool.ts";
import { SqliteTranscript } from "./sqlite-transcript.ts";
import { SqliteTurns } from "./sqlite-turns.ts";
import { StoreHandle } from "./store-handle.ts";
import { preparePath } from "./store-path.ts";

export interface SqliteStoreDeps {
  readonly host: Host;
}

/** A `StateStore` in one SQLite file. */
export interface SqliteStore extends StateStore {
  /** What is known of the file, for `doctor` and for messages. */
  readonly file: StoreFile;
  [Symbol.asyncDispose](): Promise<void>;
}

const noReserve =
  "There is no room for the reserve that takes what a turn had produced when the disk is full. Free some space.";

/** What an opening takes of the disk itself: the index of the log, 32 KiB, and its folder's entries. */
const openingBytes = 48 * 1024;

/** A full disk keeps nobody from looking at a store: an opening may have room in the reserve. */
async function acquire(path: string, reserve: SpoolReserve, open: () => Promise<SharedDatabase>): Promise<Holding> {
  try {
    return await acquireDatabase(path, open);
  } catch (error) {
    if (!CodedError.is<StoreErrorCode>(error, "STORE_FULL") || !reserve.giveUp(openingBytes)) throw error;
    return acquireDatabase(path, open);
  }
}

/**
 * Opens the store in the SQLite file at `path`, making file (0600) and folders (0700) where they are missing and
 * bringing the schema up to date. Handles on one file share one writer within the process and are counted; `close`
 * ends this handle alone. Keeps APPEND-3, SPOOL-1, STORE-1 and STORE-2. Rejects with `STORE_UNAVAILABLE`, `STORE_READONLY`,
 * `STORE_CORRUPT`, `STORE_NEWER`, `STORE_DUPLICATE`, `STORE_FULL`, `STORE_BUSY` or `STORE_IO`; nothing is left open
 * then.
 */
export async function openSqliteStore(
  path: string,
  deps: SqliteStoreDeps,
  options: SqliteStoreOptions = {},
): Promise<SqliteStore> {
  const resolved = resolveSqliteStoreOptions(options);
  const realPath = preparePath(path);
  const spool = new SpoolFolder(realPath, deps.host.random);
  const reservedBytes = spool.reserve.size;
  const holding = await acquire(realPath, spool.reserve, () => openDatabase(realPath, deps.host, resolved));
  const { file } = holding.database;
  const handle = new StoreHandle(holding, deps.host);
  const isLaid = spool.reserve.lay();
  let isOpen = true;
  const close = async (): Promise<void> => {
    isOpen = false;
    await handle.close();
    // Where the disk is full still, what the opening took of it, and what was given back just now.
    if (!isLaid) spool.reserve.lay(reservedBytes);
  };
  return {
    sessions: new SqliteSessions(handle, spool, deps.host),
    leases: new SqliteLeases(handle, spool),
    transcript: new SqliteTranscript(handle, deps.host),
    inbox: new SqliteInbox(handle),
    turns: new SqliteTurns(handle, spool),
    spool: new SqliteSpool(spool, deps.host, () => isOpen),
    check: () => handle.check(),
    file: isLaid ? file : { ...file, notes: [...file.notes, noReserve] },
    close,
    [Symbol.asyncDispose]: close,
  };
}
