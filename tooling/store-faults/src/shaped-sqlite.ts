import fileSystem from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import Database from "better-sqlite3";
import type { Workload } from "./workload.ts";

/**
 * Shapes every connection of this process below the store: frequent checkpoints, which are otherwise rare, and in mode
 * `normal` an SQLite and a spool that never wait for the disk, whatever the store asks of them.
 */
export function shapeSqlite({ checkpointPages, mode }: Pick<Workload, "checkpointPages" | "mode">): void {
  if (mode === "normal") {
    fileSystem.fdatasyncSync = () => {};
    syncBuiltinESMExports();
  }
  const exec = Reflect.get(Database.prototype, "exec") as (this: Database.Database, sql: string) => Database.Database;
  Database.prototype.exec = function (this: Database.Database, sql: string) {
    // The store checkpoints by itself, and rarely: SQLite does it here instead.
    const checkpointing = sql.replace("wal_autocheckpoint = 0", `wal_autocheckpoint = ${checkpointPages ?? 0}`);
    return exec.call(
      this,
      mode === "normal" ? checkpointing.replace("synchronous = FULL", "synchronous = NORMAL") : checkpointing,
    );
  };
}
