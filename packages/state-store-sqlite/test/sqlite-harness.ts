import { copyFileSync, cpSync, existsSync, mkdtempSync, renameSync } from "node:fs";
import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import type { ConformanceHarness } from "@turnkeeper/state-store/testing";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { SqliteStore } from "@turnkeeper/state-store-sqlite";

export interface SqliteHarness extends ConformanceHarness {
  readonly host: VirtualHost;
  readonly open: () => Promise<SqliteStore>;
  readonly reopen: () => Promise<SqliteStore>;
  close(): Promise<void>;
}

/**
 * The SQLite store under the conformance cases. `reopen` opens what the files hold at that moment, copied while the
 * old handle is still open: nothing that only the crashed process knew, and its WAL not checkpointed, as after kill -9.
 */
export function sqliteHarness(parent: string): SqliteHarness {
  const host = virtualHost();
  const folder = mkdtempSync(join(parent, "store-"));
  let count = 0;
  let current: SqliteStore | undefined;
  const next = (): string => join(folder, `state-${++count}.db`);
  return {
    host,
    open: async () => (current = await openSqliteStore(next(), { host })),
    reopen: async () => {
      if (!current) throw new Error("Open the store before it is reopened.");
      const crashed = current;
      const path = next();
      for (const end of ["", "-wal"])
        if (existsSync(`${crashed.file.path}${end}`)) copyFileSync(`${crashed.file.path}${end}`, `${path}${end}`);
      const spool = `${crashed.file.path}-spool`;
      if (existsSync(spool)) cpSync(spool, `${path}-spool`, { recursive: true });
      // Only to make no more of them: a crash between any two calls opens a store for each.
      renameSync(`${crashed.file.path}-reserve`, `${path}-reserve`);
      current = await openSqliteStore(path, { host });
      await crashed.close();
      return current;
    },
    close: async () => {
      await current?.close();
    },
  };
}
