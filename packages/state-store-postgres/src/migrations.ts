import { readdirSync, readFileSync } from "node:fs";
import { CodedError } from "@turnkeeper/kernel";
import pg from "pg";
import type { ResolvedPostgresStoreOptions } from "./options.ts";
import { StatementFailed } from "./server.ts";
import type { Server } from "./server.ts";
import { codeOf, phaseOf, storeError } from "./store-failure.ts";
import type { StoreUrl } from "./store-url.ts";

interface Migration {
  readonly version: number;
  readonly sql: string;
}

const migrationName = /^(\d{4})-[a-z0-9-]+\.sql$/;

let known: readonly Migration[] | undefined;

/**
 * The numbered SQL files of this package, in order; a released one is never edited. Read once per process. The folder's
 * name is its own, since a bundle has those of several stores beside its code.
 */
function migrations(): readonly Migration[] {
  known ??= readdirSync(new URL("../postgres-migrations/", import.meta.url))
    .flatMap((name): Migration[] => {
      const number = migrationName.exec(name)?.[1];
      if (number === undefined) return [];
      return [
        {
          version: Number(number),
          sql: readFileSync(new URL(`../postgres-migrations/${name}`, import.meta.url), "utf8"),
        },
      ];
    })
    .toSorted((left, right) => left.version - right.version);
  return known;
}

/** The schema version that this release writes. */
export function newestSchemaVersion(): number {
  return migrations().at(-1)?.version ?? 0;
}

/** PostgreSQL from this version on has what the functions use. */
const oldestServer = 140_000;

async function schemaVersion(client: pg.Client, schema: string): Promise<number> {
  // Of the catalogue itself: what to_regclass says may be from before somebody else's migration was waited for.
  const { rows } = await client.query({
    text: "SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1 AND relname = 'store'",
    values: [schema],
  });
  if (rows.length === 0) return 0;
  const found = await client.query<{ version: number }>(`SELECT version FROM "${schema}".store`);
  return found.rows[0]?.version ?? 0;
}

function checkKnown(version: number, store: string): void {
  if (version <= newestSchemaVersion()) return;
  throw storeError(
    "STORE_NEWER",
    `Could not open the store ${store}: it has schema version ${version} and this release knows ${newestSchemaVersion()}. Nothing was touched; update @turnkeeper/state-store-postgres.`,
    { store, version, knownVersion: newestSchemaVersion() },
  );
}

interface ServerFacts {
  readonly number: number;
  readonly encoding: string;
  readonly takes_writes: boolean;
}

/** What opening has found. */
export interface FoundSchema {
  readonly version: number;
  /** Why nothing can be stored by whoever has opened it; absent where it can. */
  readonly readOnly?: "server" | "user";
}

function checkServer({ number, encoding }: ServerFacts, store: string): void {
  if (number < oldestServer)
    throw storeError(
      "STORE_UNAVAILABLE",
      `Could not open the store ${store}: its server is PostgreSQL ${Math.floor(number / 10_000)}, and 14 is the oldest that will do.`,
      { store },
    );
  if (encoding !== "UTF8")
    throw storeError(
      "STORE_UNAVAILABLE",
      `Could not open the store ${store}: its database is encoded in ${encoding}, which cannot hold every text. Create one with ENCODING 'UTF8'.`,
      { store },
    );
}

const serverFacts = `SELECT current_setting('server_version_num')::integer AS number,
  pg_encoding_to_char(encoding) AS encoding, current_setting('transaction_read_only') = 'off' AS takes_writes`;
const ownDatabase = "FROM pg_database WHERE datname = current_database()";

/** What is there, in one statement on a connection that the store goes on with. */
async function look(server: Server): Promise<FoundSchema> {
  const ask = async (columns: string): Promise<FoundSchema> => {
    const [row] = await server.once<ServerFacts & { version: number | null; may_write: boolean }>(
      `${serverFacts}, ${columns} ${ownDatabase}`,
      [],
    );
    if (row) checkServer(row, server.shown);
    const version = row?.version ?? 0;
    if (row?.takes_writes === false) return { version, readOnly: "server" };
    return row?.may_write === false ? { version, readOnly: "user" } : { version };
  };
  const { schema } = server;
  try {
    return await ask(
      `(SELECT version FROM ${schema}.store) AS version, has_table_privilege('${schema}.lease', 'INSERT') AS may_write`,
    );
  } catch (error) {
    const isMissing = error instanceof StatementFailed && ["42P01", "3F000"].includes(codeOf(error.cause));
    if (!isMissing) throw error;
    return await ask("NULL AS version, true AS may_write");
  }
}

/** For those who look and nothing else: what is not there, or not up to date, is another's to make. */
function refuseToMake(version: number, { shown, schema }: Server): never {
  throw storeError(
    "STORE_UNAVAILABLE",
    version === 0
      ? `There is no store at ${shown}: its database has no schema ${schema} of ours. Nothing was touched; the first who may write makes it.`
      : `Could not open the store ${shown}: it has schema version ${version}, and this release wants ${newestSchemaVersion()}. Nothing was touched; the first who may write brings it up to date.`,
    { store: shown, version, knownVersion: newestSchemaVersion() },
  );
}

type MigrationOptions = Pick<ResolvedPostgresStoreOptions, "schema" | "answerMs">;

/** One step after another in one transaction, under a lock that others who open the store meanwhile wait for. */
async function bringUpToDate(
  client: pg.Client,
  { schema, answerMs }: MigrationOptions,
  store: string,
): Promise<FoundSchema> {
  await client.query("BEGIN");
  // Whoever has the lock may stand still, or somebody the tables: then opening ends, and says so.
  await client.query({ text: "SELECT set_config('lock_timeout', $1, true)", values: [`${answerMs}ms`] });
  await client.query({
    text: "SELECT pg_advisory_xact_lock(hashtextextended('turnkeeper ' || $1, 0))",
    values: [schema],
  });
  let version = await schemaVersion(client, schema);
  checkKnown(version, store);
  // Not IF NOT EXISTS, which asks for the right to create one even where an administrator has.
  const made = await client.query({ text: "SELECT FROM pg_namespace WHERE nspname = $1", values: [schema] });
  if (made.rows.length === 0) await client.query(`CREATE SCHEMA "${schema}"`);
  // What a function's FROM CURRENT remembers: the store's own schema, and nobody's temporary tables before it.
  await client.query(`SET LOCAL search_path = "${schema}", pg_temp`);
  if (version === 0)
    await client.query(
      "CREATE TABLE store (store_no integer PRIMARY KEY CHECK (store_no = 1), version integer NOT NULL)",
    );
  for (const migration of migrations()) {
    if (migration.version <= version) continue;
    await client.query(migration.sql);
    version = migration.version;
  }
  await client.query({
    text: "INSERT INTO store (store_no, version) VALUES (1, $1) ON CONFLICT (store_no) DO UPDATE SET version = $1",
    values: [version],
  });
  await client.query("COMMIT");
  return { version };
}

/** A connection of its own, on which a statement may take as long as it takes. Throws `StatementFailed`. */
async function connected<T>(url: StoreUrl, act: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url.connectionString,
    connectionTimeoutMillis: 5_000,
    fallback_application_name: "turnkeeper",
  });
  // Told by the statement that it stops.
  client.on("error", () => {});
  try {
    await client.connect();
    return await act(client);
  } catch (error) {
    if (CodedError.is(error)) throw error;
    throw new StatementFailed(phaseOf(error) === "refused" ? "refused" : "connect", error);
  } finally {
    // Not waited for: a server that says nothing does not say goodbye either.
    void client.end().catch(() => {});
  }
}

/**
 * Makes the store's schema where it is missing and brings it up to date; answers what it found. A schema that is up to
 * date is only looked at, so that a user who may not change it can open it. Tried once: throws `StatementFailed`.
 */
export async function migrate(
  server: Server,
  url: StoreUrl,
  options: MigrationOptions & Pick<ResolvedPostgresStoreOptions, "onlyLooks">,
): Promise<FoundSchema> {
  const found = await look(server);
  checkKnown(found.version, server.shown);
  if (found.version === newestSchemaVersion()) return found;
  if (options.onlyLooks) refuseToMake(found.version, server);
  return await connected(url, (client) => bringUpToDate(client, options, server.shown));
}
