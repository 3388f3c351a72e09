import { systemHost } from "@turnkeeper/kernel";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import pg from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { freshSchema, noServer, serverUrl } from "./postgres-harness.ts";
import { openHandle } from "./scene.ts";

async function adminOf(): Promise<pg.Client> {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  onTestFinished(() => admin.end());
  return admin;
}

/** The URL under which the server shows this schema's connections. */
function namedUrl(schema: string): string {
  const url = new URL(serverUrl);
  url.searchParams.set("application_name", schema);
  return url.href;
}

async function connectionCount(admin: pg.Client, schema: string): Promise<number> {
  const text = "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE application_name = $1";
  const { rows } = await admin.query<{ count: number }>({ text, values: [schema] });
  return rows[0]?.count ?? 0;
}

describe.skipIf(noServer)("opening a store", () => {
  test("that is up to date takes one connection, with which its first call goes on", async () => {
    const schema = freshSchema();
    await (await openHandle(serverUrl, { schema })).close();
    const admin = await adminOf();
    const store = await openHandle(namedUrl(schema), { schema });
    expect(await connectionCount(admin, schema)).toBe(1);
    await store.sessions.list();
    expect(await connectionCount(admin, schema)).toBe(1);
  });

  test("whose schema is of a later release is refused: nothing is touched, and nothing left open", async () => {
    const schema = freshSchema();
    await (await openHandle(serverUrl, { schema })).close();
    const admin = await adminOf();
    await admin.query(`UPDATE "${schema}".store SET version = 9999`);
    const opening = openPostgresStore(namedUrl(schema), { host: systemHost }, { schema });
    await expect(opening).rejects.toMatchObject({ code: "STORE_NEWER", context: { version: 9999 } });
    const { rows } = await admin.query(`SELECT version FROM "${schema}".store`);
    expect(rows).toEqual([{ version: 9999 }]);
    while ((await connectionCount(admin, schema)) > 0);
  });

  test("whose schema is there, and empty, fills it", async () => {
    const schema = freshSchema();
    const admin = await adminOf();
    await admin.query(`CREATE SCHEMA "${schema}"`);
    const store = await openHandle(serverUrl, { schema });
    expect(await store.sessions.list()).toEqual({ sessions: [] });
  });

  test("whose schema an administrator has made is made by a user who may create no other", async () => {
    const schema = freshSchema();
    const admin = await adminOf();
    const user = `user_of_${schema}`;
    await admin.query(`CREATE ROLE "${user}" LOGIN`);
    await admin.query(`CREATE SCHEMA "${schema}" AUTHORIZATION "${user}"`);
    onTestFinished(async () => void (await admin.query(`DROP OWNED BY "${user}" CASCADE; DROP ROLE "${user}"`)));
    const url = new URL(serverUrl);
    url.username = user;
    const store = await openPostgresStore(url.href, { host: systemHost }, { schema });
    expect(await store.sessions.list()).toEqual({ sessions: [] });
    expect(store.server.readOnly).toBe(undefined);
    await store.close();
  });

  test("that only looks makes and changes nothing, and says what there is not", async () => {
    const schema = freshSchema();
    const admin = await adminOf();
    const opening = openPostgresStore(serverUrl, { host: systemHost }, { schema, onlyLooks: true });
    await expect(opening).rejects.toMatchObject({ code: "STORE_UNAVAILABLE", context: { version: 0 } });
    const text = "SELECT FROM pg_namespace WHERE nspname = $1";
    expect((await admin.query({ text, values: [schema] })).rows).toEqual([]);
    await (await openHandle(serverUrl, { schema })).close();
    const looking = await openHandle(serverUrl, { schema, onlyLooks: true });
    expect(await looking.sessions.list()).toEqual({ sessions: [] });
  });

  test("waits no longer than for an answer where somebody who brings the schema up to date stands still", async () => {
    const schema = freshSchema();
    const admin = await adminOf();
    await admin.query("BEGIN");
    await admin.query({
      text: "SELECT pg_advisory_xact_lock(hashtextextended('turnkeeper ' || $1, 0))",
      values: [schema],
    });
    const opening = openPostgresStore(serverUrl, { host: systemHost }, { schema, answerMs: 3_000 });
    await expect(opening).rejects.toMatchObject({ code: "STORE_BUSY", context: { systemCode: "55P03" } });
    await admin.query("ROLLBACK");
    const store = await openHandle(serverUrl, { schema });
    expect(await store.sessions.list()).toEqual({ sessions: [] });
  });

  test("whose connection an administrator ends while it waits goes on with another", async () => {
    const schema = freshSchema();
    const [holder, admin] = await Promise.all([adminOf(), adminOf()]);
    await holder.query("BEGIN");
    await holder.query({
      text: "SELECT pg_advisory_xact_lock(hashtextextended('turnkeeper ' || $1, 0))",
      values: [schema],
    });
    // Its patience does not end however slow the machine is.
    const host = { ...systemHost, clock: { ...systemHost.clock, monotonicMs: () => 0 } };
    const opening = openPostgresStore(namedUrl(schema), { host }, { schema });
    const text =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    while ((await admin.query({ text, values: [schema] })).rows.length === 0);
    await holder.query("ROLLBACK");
    const store = await opening;
    onTestFinished(() => store.close());
    expect(await store.sessions.list()).toEqual({ sessions: [] });
  });

  test("says where nothing can be stored: for a user who may only read, and a server that takes no writes", async () => {
    const schema = freshSchema();
    await (await openHandle(serverUrl, { schema })).close();
    const admin = await adminOf();
    const user = `reader_of_${schema}`;
    await admin.query(`CREATE ROLE "${user}" LOGIN`);
    onTestFinished(async () => void (await admin.query(`DROP OWNED BY "${user}" CASCADE; DROP ROLE "${user}"`)));
    await admin.query(`GRANT USAGE ON SCHEMA "${schema}" TO "${user}"`);
    await admin.query(`GRANT SELECT ON ALL TABLES IN SCHEMA "${schema}" TO "${user}"`);
    const url = new URL(serverUrl);
    url.username = user;
    const readOnlyOf = async (): Promise<string | undefined> => {
      const store = await openPostgresStore(url.href, { host: systemHost }, { schema });
      await store.close();
      return store.server.readOnly;
    };
    expect(await readOnlyOf()).toBe("user");
    await admin.query(`ALTER ROLE "${user}" SET default_transaction_read_only = on`);
    expect(await readOnlyOf()).toBe("server");
  });

  test("with a URL that names a file which is not there is refused at once, and says so", async () => {
    const url = new URL(serverUrl);
    url.searchParams.set("sslrootcert", "/nowhere/root.crt");
    url.searchParams.set("sslmode", "verify-full");
    const opening = openPostgresStore(url.href, { host: systemHost });
    await expect(opening).rejects.toThrow(/a file that the URL names cannot be read .*sslrootcert/);
  });

  test("in a database that is not encoded in UTF8 is refused, before anything is made there", async () => {
    const admin = await adminOf();
    const name = `latin_${process.pid}`;
    await admin.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
    onTestFinished(async () => void (await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)));
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    const opening = openPostgresStore(url.href, { host: systemHost });
    await expect(opening).rejects.toThrow(/encoded in LATIN1/);
  });
});

describe.skipIf(noServer)("an open store", () => {
  test("keeps the connection of whoever calls once a minute, as a turn that renews does, and none of who calls no more", async () => {
    const schema = freshSchema();
    const admin = await adminOf();
    const pids = async (): Promise<readonly unknown[]> => {
      const text = "SELECT pid FROM pg_stat_activity WHERE application_name = $1";
      return (await admin.query({ text, values: [schema] })).rows;
    };
    const store = await openHandle(namedUrl(schema), { schema });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    await store.sessions.list();
    const opened = await pids();
    expect(opened).toHaveLength(1);
    for (let minute = 0; minute < 3; minute++) {
      vi.advanceTimersByTime(60_100);
      await store.sessions.list();
    }
    expect(await pids()).toEqual(opened);
    vi.advanceTimersByTime(120_000);
    while ((await connectionCount(admin, schema)) > 0);
  });
});
