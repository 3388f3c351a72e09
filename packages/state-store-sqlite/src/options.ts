import type { JournalMode } from "./sqlite-version.ts";
import { storeError } from "./store-failure.ts";

export interface SqliteStoreOptions {
  /**
   * The journal of a new store. `wal` (default): readers and the writer do not wait for each other. `delete`: a
   * rollback journal, for file systems that cannot share memory between processes. A store keeps the mode it has.
   */
  readonly journalMode?: JournalMode;
}

export type ResolvedSqliteStoreOptions = Required<SqliteStoreOptions>;

export const defaultSqliteStoreOptions: ResolvedSqliteStoreOptions = Object.freeze({
  // Polls and reads go on while another process writes.
  journalMode: "wal",
});

const journalModes: readonly unknown[] = ["wal", "delete"];

/** Checks the options and fills in the defaults; throws `STORE_CONTRACT` naming option, expectation and value. */
export function resolveSqliteStoreOptions(options: SqliteStoreOptions): ResolvedSqliteStoreOptions {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(defaultSqliteStoreOptions, name))
      throw storeError(
        "STORE_CONTRACT",
        `openSqliteStore has no option ${JSON.stringify(name)}; it knows journalMode.`,
      );
  }
  const journalMode = options.journalMode ?? defaultSqliteStoreOptions.journalMode;
  if (!journalModes.includes(journalMode))
    throw storeError(
      "STORE_CONTRACT",
      `Option journalMode of openSqliteStore must be "wal" or "delete", got ${JSON.stringify(journalMode)}.`,
    );
  return Object.freeze({ journalMode });
}
