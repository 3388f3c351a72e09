export { openSqliteStore } from "./open-store.ts";
export type { SqliteStore, SqliteStoreDeps } from "./open-store.ts";
export { defaultSqliteStoreOptions } from "./options.ts";
export type { SqliteStoreOptions } from "./options.ts";
export { closeAllStores } from "./store-handle.ts";
export type { StoreFile } from "./shared-database.ts";
export type { JournalMode } from "./sqlite-version.ts";
export { fileLock } from "./file-lock.ts";
export type { FileLock, FileLockOptions, HoldOutcome } from "./file-lock.ts";
export { rebuildSearchIndex } from "./rebuild-search-index.ts";
export { checkStructure } from "./check-structure.ts";
export type { Structure } from "./structure-process.ts";
export { repairDerived } from "./repair-derived.ts";
export type { DerivedMend, RepairOptions } from "./repair-derived.ts";
export { processesWith } from "./recovery/open-processes.ts";
export type { OpenProcess } from "./recovery/open-processes.ts";
export { recoverStore } from "./recovery/recover-store.ts";
export type { RecoveryGoal, RecoveryOptions } from "./recovery/recover-store.ts";
export type {
  Mend,
  MissingEntries,
  RecoveredTable,
  RecoveryProgress,
  RecoveryReport,
  RecoverySource,
  RefusedRow,
  UnreadPage,
} from "./recovery/recovery-report.ts";
