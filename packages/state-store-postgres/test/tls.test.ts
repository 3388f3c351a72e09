import { CodedError, systemHost } from "@turnkeeper/kernel";
import { startPostgres } from "@turnkeeper/postgres-server";
import type { PostgresServer } from "@turnkeeper/postgres-server";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { canIssue, makeAuthority } from "./authority.ts";
import type { Authority } from "./authority.ts";
import { noServer, serverUrl } from "./postgres-harness.ts";
import { openHandle, says, startTurn } from "./scene.ts";
import { suiteFolder } from "./temp-folder.ts";

/** Everything that somebody could see of how opening the store failed. */
async function refusalOf(
  url: string,
): Promise<{ readonly code: string; readonly message: string; readonly all: string }> {
  try {
    await (await openPostgresStore(url, { host: systemHost })).close();
  } catch (error) {
    if (!CodedError.is(error)) throw error;
    const cause = error.cause instanceof Error ? `${error.cause.message}${error.cause.stack}` : "";
    return { code: error.code, message: error.message, all: `${error.stack}${JSON.stringify(error)}${cause}` };
  }
  throw new Error("The store was opened.");
}

// Needs a server of PostgreSQL on this machine, and openssl to make certificates.
describe.skipIf(noServer || !canIssue())("a server with TLS and passwords", () => {
  const folder = suiteFolder();
  let server: PostgresServer | undefined;
  let trusted: Authority | undefined;
  let other: Authority | undefined;

  beforeAll(async () => {
    trusted = makeAuthority(folder(), "trusted");
    other = makeAuthority(folder(), "other");
    const admission = "host all postgres 127.0.0.1/32 trust\nhostssl all worker 127.0.0.1/32 scram-sha-256\n";
    server = await startPostgres({ tls: trusted.issue("127.0.0.1"), admission });
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    await admin.query("CREATE ROLE worker LOGIN PASSWORD 'right-word'; GRANT CREATE ON DATABASE postgres TO worker");
    await admin.end();
  }, 60_000);
  afterAll(() => server?.close());

  function urlFor(change: {
    readonly authority?: Authority | undefined;
    readonly password?: string;
    readonly host?: string;
  }): string {
    const url = new URL(server?.url ?? "");
    url.username = "worker";
    url.password = change.password ?? "right-word";
    url.hostname = change.host ?? "127.0.0.1";
    url.searchParams.set("sslmode", "verify-full");
    if (change.authority) url.searchParams.set("sslrootcert", change.authority.file);
    return url.href;
  }

  test("is reached over TLS with a password, by statements and wake-ups, where its certificate is as it should be", async () => {
    const store = await openHandle(urlFor({ authority: trusted }), { schema: "tls" });
    const { grant, turnId } = await startTurn(store, "a");
    expect((await store.transcript.append({ grant, turnId, entries: [says("step")] })).kind).toBe("committed");
    using wakeUps = store.listen(() => {});
    expect(await wakeUps.problem).toBe(undefined);
    const admin = new pg.Client({ connectionString: server?.url ?? "" });
    await admin.connect();
    const { rows } = await admin.query<{ ssl: boolean }>(
      "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'worker'",
    );
    await admin.end();
    expect(rows).toEqual([{ ssl: true }]);
  });

  test("is refused where another authority signed its certificate, and the message says what to do", async () => {
    const { code, message } = await refusalOf(urlFor({ authority: other }));
    expect(code).toBe("STORE_UNAVAILABLE");
    expect(message).toContain("certificate is not to be trusted");
    expect(message).toContain("sslrootcert");
  });

  test("is refused under a name that is not in its certificate", async () => {
    const { code, message } = await refusalOf(urlFor({ authority: trusted, host: "localhost" }));
    expect(code).toBe("STORE_UNAVAILABLE");
    expect(message).toContain("certificate is not to be trusted");
  });

  test("tells nobody the password, neither the wrong nor the right one", async () => {
    const wrong = await refusalOf(urlFor({ authority: trusted, password: "wrong-word" }));
    expect(wrong.code).toBe("STORE_UNAVAILABLE");
    expect(wrong.message).toContain("does not let this user in");
    for (const { all } of [wrong, await refusalOf(urlFor({ authority: other }))])
      expect(all).not.toMatch(/(wrong|right)-word/);
  });

  test("is asked for in vain where there is none: the message says so, and a missing file is named", async () => {
    const url = new URL(serverUrl);
    url.searchParams.set("sslmode", "verify-full");
    expect((await refusalOf(url.href)).message).toContain("has no TLS");
    url.searchParams.set("sslrootcert", "/nowhere/authority.crt");
    expect((await refusalOf(url.href)).message).toContain("/nowhere/authority.crt");
  });
});
