/**
 * Who has which store file open in this process.
 *
 * Owns STORE-2: one writer per file per process; a replaced file retires it without harming its holders. Handles on
 * one file share one database and are counted; the last to close ends it. A file is known by device and inode, so a
 * symbolic link or a second mount leads to the same database, and a new file at an old path is another one.
 *
 * A second installed copy of this package has its own SQLite, whose closing would cancel the locks of the first; the
 * list of open files therefore stands under `Symbol.for`, and a copy that finds a file of another copy is refused.
 *
 * | slot | event | next |
 * | --- | --- | --- |
 * | none | acquire | opening |
 * | opening | acquire | opening, counted: all who wait get the same database or the same error |
 * | opening | failed | none |
 * | open | acquire | open, counted, after a look at the files |
 * | open | release by the last holder | none: the database is closed |
 * | any | sealed | sealed, for the life of the process: it is neither closed nor lent again |
 */
import type { SharedDatabase } from "./shared-database.ts";
import { foreignLogError, storeError } from "./store-failure.ts";
import { fileKey } from "./store-guard.ts";

interface Slot {
  readonly opening: Promise<SharedDatabase>;
  database?: SharedDatabase;
  holderCount: number;
}

/** All that copies of this package share: which copy has which file. Kept this plain so that versions understand it. */
const openFilesSymbol = Symbol.for("turnkeeper.state-store-sqlite.open-files");

function openFiles(): Map<string, symbol> {
  const holder = globalThis as { [openFilesSymbol]?: Map<string, symbol> };
  return (holder[openFilesSymbol] ??= new Map());
}

const thisCopy = Symbol("copy");
const slots = new Map<string, Slot>();

/**
 * A process that simply ends has its connections closed by the addon, in no useful order, and the last to close
 * checkpoints. Ending it here skips that for a database that is sealed or whose files are gone (STORE-1).
 */
function endWithoutCheckpoint(exitCode: number): void {
  const databases = [...slots.values()].flatMap(({ database }) => database ?? []);
  if (databases.some((database) => database.isSealed())) process.exit(exitCode);
}

function forget(key: string): void {
  slots.delete(key);
  openFiles().delete(key);
  if (slots.size === 0) process.off("exit", endWithoutCheckpoint);
}

export interface Holding {
  readonly database: SharedDatabase;
  /** Gives it back; the last holder's release closes the database, unless it is sealed. Safe to repeat. */
  release(): void;
}

function holding(key: string, slot: Slot, database: SharedDatabase): Holding {
  let isHeld = true;
  return {
    database,
    release: () => {
      if (!isHeld) return;
      isHeld = false;
      slot.holderCount--;
      if (slot.holderCount > 0) return;
      if (database.close()) forget(key);
    },
  };
}

/** Lends the database of the file at `path`, opening it for the first holder. A failed opening leaves nothing. */
export async function acquireDatabase(path: string, open: () => Promise<SharedDatabase>): Promise<Holding> {
  const key = fileKey(path);
  const owner = openFiles().get(key);
  if (owner !== undefined && owner !== thisCopy)
    throw storeError(
      "STORE_DUPLICATE",
      `Could not open the store ${path}: a second installed copy of @turnkeeper/state-store-sqlite has it open in this process, and two copies would cancel each other's locks. Deduplicate the dependency, or pass the opened store on.`,
      { path },
    );
  const known = slots.get(key);
  if (known) {
    if (known.database?.isSealed()) throw known.database.refusal("open", "open");
    known.holderCount++;
    return holding(key, known, await known.opening);
  }
  if ([...slots.values()].some(({ database }) => database?.hauntsPath(path))) throw foreignLogError(path);
  if (slots.size === 0) process.on("exit", endWithoutCheckpoint);
  openFiles().set(key, thisCopy);
  const slot: Slot = { opening: open(), holderCount: 1 };
  slots.set(key, slot);
  try {
    slot.database = await slot.opening;
    return holding(key, slot, slot.database);
  } catch (error) {
    forget(key);
    throw error;
  }
}
