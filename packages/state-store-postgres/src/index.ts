export { openPostgresStore } from "./open-store.ts";
export type { PostgresStore, PostgresStoreDeps, StoreSchema } from "./open-store.ts";
export { defaultPostgresStoreOptions } from "./options.ts";
export type { PostgresStoreOptions } from "./options.ts";
export type { WakeUps } from "./wake-ups.ts";
export { isPostgresUrl } from "./store-url.ts";
