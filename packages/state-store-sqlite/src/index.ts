export { openSqliteStore } from "./open-store.ts";
export type { SqliteStore, SqliteStoreDeps } from "./open-store.ts";
export { defaultSqliteStoreOptions } from "./options.ts";
export type { SqliteStoreOptions } from "./options.ts";
export type { StoreFile } from "./shared-database.ts";
export type { JournalMode } from "./sqlite-version.ts";
export { rebuildSearchIndex } from "./rebuild-search-index.ts";
