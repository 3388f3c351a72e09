import Database from "better-sqlite3";
import type { Workload } from "./workload.ts";

/**
 * Shapes every connection of this process below the store: frequent checkpoints, which are otherwise rare, and in mode
 * `normal` an SQLite that never waits for the disk, whatever the store asks of it.
 */
export function shapeSqlite({ checkpointPages, mode }: Pick<Workload, "checkpointPages" | "mode">): void {
  const seen = new WeakSet<Database.Database>();
  const exec = Reflect.get(Database.prototype, "exec") as (this: Database.Database, sql: string) => Database.Database;
  Database.prototype.exec = function (this: Database.Database, sql: string) {
    if (!seen.has(this)) {
      seen.add(this);
      if (checkpointPages !== undefined) exec.call(this, `PRAGMA wal_autocheckpoint = ${checkpointPages}`);
    }
    return exec.call(this, mode === "normal" ? sql.replace("synchronous = FULL", "synchronous = NORMAL") : sql);
  };
}
