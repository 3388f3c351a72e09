import { storeError } from "./store-failure.ts";

/** A store's URL, taken apart: how to connect, and how to name it without its secrets. */
export interface StoreUrl {
  readonly connectionString: string;
  /** For messages: no password, and of the parameters the host and the schema alone. */
  readonly shown: string;
  readonly schema: string | undefined;
}

/** Whether it names a server rather than a file. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//i.test(text);
}

/** Throws `STORE_CONTRACT` for what is no URL of PostgreSQL; the text itself is not told, since it may hold a password. */
export function parseStoreUrl(text: string): StoreUrl {
  // `postgres:///db?host=/run/postgresql` is what libpq knows a socket by, and no URL has an empty host.
  const withHost = text.replace(/^(postgres(?:ql)?:\/\/)(?=[/?]|$)/i, "$1localhost");
  if (!isPostgresUrl(text) || !URL.canParse(withHost))
    throw storeError(
      "STORE_CONTRACT",
      "The store's URL is none of PostgreSQL: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters in percent form.",
    );
  const url = new URL(withHost);
  const schema = url.searchParams.get("schema") ?? undefined;
  url.searchParams.delete("schema");
  const connectionString = url.href;
  const host = url.searchParams.get("host");
  url.password = "";
  url.search = "";
  if (host !== null) url.searchParams.set("host", host);
  if (schema !== undefined) url.searchParams.set("schema", schema);
  return { connectionString, shown: url.href, schema };
}
