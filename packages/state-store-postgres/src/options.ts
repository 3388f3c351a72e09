import { storeError } from "./store-failure.ts";
import { isPostgresUrl } from "./store-url.ts";

export interface PostgresStoreOptions {
  /** The schema that the store has for itself; made where it is missing. Default `turnkeeper`, or the URL's `schema`. */
  readonly schema?: string;
  /** The most connections this handle opens to the server. Default 10. */
  readonly connectionsMax?: number;
  /**
   * After so many milliseconds without an answer a connection counts as cut, and what was asked is asked on another.
   * Default 20,000.
   */
  readonly answerMs?: number;
  /**
   * Where `listen` has its connection: a URL that leads to the server itself, where the store's own leads to a pooler in
   * transaction mode; `false`: it has none. Default: the store's URL.
   */
  readonly listenUrl?: string | false;
  /**
   * For so many milliseconds by the server's clock whoever is to run an input is taken to live; this handle says so of
   * its own again three times meanwhile, while they wait. Then the input is an orphan, which any other may run. Default
   * 30,000.
   */
  readonly runnerTtlMs?: number;
  /**
   * A schema that is missing or not up to date is left as it is, and refused with `STORE_UNAVAILABLE`: for who looks at a
   * store and should change nothing of it. Default false.
   */
  readonly onlyLooks?: boolean;
  /**
   * The folder for what a turn had produced when the server could not take it. Without one a step that the server
   * refuses has no second place. Default: none.
   */
  readonly spoolFolder?: string;
}

export interface ResolvedPostgresStoreOptions {
  readonly schema: string;
  readonly connectionsMax: number;
  readonly answerMs: number;
  readonly listenUrl: string | false | undefined;
  readonly runnerTtlMs: number;
  readonly onlyLooks: boolean;
  readonly spoolFolder: string | undefined;
}

export const defaultPostgresStoreOptions: Readonly<
  Required<Pick<PostgresStoreOptions, "schema" | "connectionsMax" | "answerMs" | "runnerTtlMs">>
> = Object.freeze({
  // One of its own, so that it can be granted, dumped and dropped as a whole.
  schema: "turnkeeper",
  // A turn has one call under way at a time: ten carry many turns, and a server has a hundred connections by default.
  connectionsMax: 10,
  // Far above what a statement takes, its wait for a lock included: the way is cut, and nobody said so.
  answerMs: 20_000,
  // A process that stood still for longer loses no more than its turn to run what it waits with.
  runnerTtlMs: 30_000,
});

const known: readonly string[] = [
  "schema",
  "connectionsMax",
  "answerMs",
  "listenUrl",
  "runnerTtlMs",
  "onlyLooks",
  "spoolFolder",
];

function wrong(name: string, expectation: string, value: unknown): Error {
  return storeError(
    "STORE_CONTRACT",
    `Option ${name} of openPostgresStore must be ${expectation}, got ${JSON.stringify(value)}.`,
  );
}

/** Checks the options and fills in the defaults; throws `STORE_CONTRACT` naming option, expectation and value. */
export function resolvePostgresStoreOptions(
  options: PostgresStoreOptions,
  schemaOfUrl: string | undefined,
): ResolvedPostgresStoreOptions {
  for (const name of Object.keys(options))
    if (!known.includes(name))
      throw storeError(
        "STORE_CONTRACT",
        `openPostgresStore has no option ${JSON.stringify(name)}; it knows ${known.join(", ")}.`,
      );
  const schema = options.schema ?? schemaOfUrl ?? defaultPostgresStoreOptions.schema;
  if (typeof schema !== "string" || !/^[a-z_][a-z0-9_]{0,62}$/.test(schema) || schema.startsWith("pg_"))
    throw wrong("schema", "a name of lower case letters, digits and underscores that does not begin with pg_", schema);
  const connectionsMax = options.connectionsMax ?? defaultPostgresStoreOptions.connectionsMax;
  if (!Number.isSafeInteger(connectionsMax) || connectionsMax < 1)
    throw wrong("connectionsMax", "a whole number of at least 1", connectionsMax);
  const answerMs = options.answerMs ?? defaultPostgresStoreOptions.answerMs;
  if (!Number.isSafeInteger(answerMs) || answerMs < 1)
    throw wrong("answerMs", "a whole number of milliseconds of at least 1", answerMs);
  const runnerTtlMs = options.runnerTtlMs ?? defaultPostgresStoreOptions.runnerTtlMs;
  if (!Number.isSafeInteger(runnerTtlMs) || runnerTtlMs < 100)
    throw wrong("runnerTtlMs", "a whole number of milliseconds of at least 100", runnerTtlMs);
  const { listenUrl, onlyLooks = false, spoolFolder } = options;
  if (typeof onlyLooks !== "boolean") throw wrong("onlyLooks", "true or false", onlyLooks);
  // Not told: it may have a password in it.
  if (listenUrl !== undefined && listenUrl !== false && !(typeof listenUrl === "string" && isPostgresUrl(listenUrl)))
    throw wrong("listenUrl", "a postgres:// URL or false", "something else");
  if (spoolFolder !== undefined && (typeof spoolFolder !== "string" || spoolFolder === ""))
    throw wrong("spoolFolder", "the path of a folder", spoolFolder);
  return Object.freeze({ schema, connectionsMax, answerMs, listenUrl, runnerTtlMs, onlyLooks, spoolFolder });
}
