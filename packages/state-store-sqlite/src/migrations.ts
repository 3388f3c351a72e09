import { readdirSync, readFileSync } from "node:fs";
import type { Random } from "@turnkeeper/kernel";
import type { Connection } from "./connection.ts";
import { storeError } from "./store-failure.ts";

interface Migration {
  readonly version: number;
  readonly sql: string;
}

const migrationName = /^(\d{4})-[a-z0-9-]+\.sql$/;

let known: readonly Migration[] | undefined;

/** The numbered SQL files of this package, in order; a released one is never edited. Read once per process. */
function migrations(): readonly Migration[] {
  known ??= readdirSync(new URL("../migrations/", import.meta.url))
    .flatMap((name): Migration[] => {
      const number = migrationName.exec(name)?.[1];
      if (number === undefined) return [];
      return [
        { version: Number(number), sql: readFileSync(new URL(`../migrations/${name}`, import.meta.url), "utf8") },
      ];
    })
    .toSorted((left, right) => left.version - right.version);
  return known;
}

/** The schema version that this release writes. */
export function newestSchemaVersion(): number {
  return migrations().at(-1)?.version ?? 0;
}

/** A later release may bring the schema further while this one has the store open: from then on it writes nothing. */
export function refuseMigrated(rows: Connection, path: string): void {
  const version = rows.get<{ user_version: number }>("PRAGMA user_version")?.user_version ?? 0;
  const known = newestSchemaVersion();
  if (version <= known) return;
  throw storeError(
    "STORE_NEWER",
    `Could not write to the store ${path}: a later release has brought it to schema version ${version} while this process had it open, and this release knows ${known}. Nothing was written; restart the process with the later release.`,
    { path, version, knownVersion: known, isIndeterminate: false },
  );
}

/**
 * Tells by reading alone what the file is: 0 for a new one, else its schema version. Throws `STORE_NEWER` for one
 * that a later release wrote, and `STORE_UNAVAILABLE` for a database of another program.
 */
export function schemaVersion(rows: Connection, path: string): number {
  // One statement, so one state of the file: another process may be making this store right now.
  const found = rows.get<{ version: number; all_count: number; own_count: number }>(
    `SELECT user_version AS version,
       (SELECT count(*) FROM sqlite_schema WHERE type = 'table') AS all_count,
       (SELECT count(*) FROM sqlite_schema WHERE name IN ('store', 'session', 'lease', 'input') AND type = 'table') AS own_count
     FROM pragma_user_version`,
  );
  const version = found?.version ?? 0;
  if (version > newestSchemaVersion())
    throw storeError(
      "STORE_NEWER",
      `Could not open the store ${path}: it has schema version ${version} and this release knows ${newestSchemaVersion()}. Nothing was touched; update @turnkeeper/state-store-sqlite.`,
      { path, version, knownVersion: newestSchemaVersion() },
    );
  const isOurs = version === 0 ? found?.all_count === 0 : found?.own_count === 4;
  if (!isOurs)
    throw storeError(
      "STORE_UNAVAILABLE",
      `Could not open the store ${path}: it is an SQLite database of another program. Nothing was touched; choose another path.`,
      { path },
    );
  return version;
}

/**
 * Brings the schema up to date in one transaction and answers its version. Of two processes that start together one
 * waits (its `BEGIN IMMEDIATE` finds the file busy), and then finds the work done.
 */
export function migrate(rows: Connection, path: string, random: Random): number {
  rows.begin("full");
  try {
    let version = schemaVersion(rows, path);
    // Tells this file from any other that is copied over it; see StoreGuard.
    if (rows.pragma("application_id") === 0)
      rows.execute(`PRAGMA application_id = ${1 + Math.floor(random.unit() * (2 ** 31 - 1))}`);
    for (const migration of migrations()) {
      if (migration.version <= version) continue;
      rows.execute(migration.sql);
      version = migration.version;
      rows.execute(`PRAGMA user_version = ${version}`);
    }
    rows.commit();
    return version;
  } catch (error) {
    rows.rollback();
    throw error;
  }
}
