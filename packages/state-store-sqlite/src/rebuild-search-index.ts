import { EntrySearch } from "./entry-search.ts";
import { openDatabase } from "./open-database.ts";
import type { SqliteStoreDeps } from "./open-store.ts";
import { defaultSqliteStoreOptions } from "./options.ts";
import { acquireDatabase } from "./registry.ts";
import { resetIndex, SearchIndexBroken } from "./search-index.ts";
import { storeError } from "./store-failure.ts";
import { StoreHandle } from "./store-handle.ts";
import { preparePath } from "./store-path.ts";

/**
 * Makes the search index of the store at `path` anew from its entries, in short transactions beside whatever else uses
 * the store; searches meanwhile read what is not in it yet. Safe to repeat, and to break off: the next search goes on
 * with it. Rejects like `openSqliteStore` and any write, and with `STORE_CORRUPT` where the broken index cannot be
 * removed from the file.
 */
export async function rebuildSearchIndex(path: string, deps: SqliteStoreDeps): Promise<void> {
  const realPath = preparePath(path);
  const holding = await acquireDatabase(realPath, () => openDatabase(realPath, deps.host, defaultSqliteStoreOptions));
  const handle = new StoreHandle(holding, deps.host);
  try {
    const reset = (how: "drop" | "rename"): Promise<void> =>
      handle.write("ordinary", "make the search index anew", (tx) => resetIndex(tx, how));
    try {
      await reset("drop");
    } catch (error) {
      if (!(error instanceof SearchIndexBroken)) throw error;
      // In a transaction of its own: what failed to be dropped is in no state to be renamed before it is undone.
      await reset("rename");
    }
    await new EntrySearch(handle, deps.host).fill();
  } catch (error) {
    if (!(error instanceof SearchIndexBroken)) throw error;
    throw storeError(
      "STORE_CORRUPT",
      `Could not make the search index of the store ${realPath} anew: what is left of it cannot be removed. Nothing else is wrong with the store, and searches find everything without it, more slowly; to have an index again, recover the store into a new file.`,
      { path: realPath },
      error.cause,
    );
  } finally {
    await handle.close();
  }
}
