import { systemHost } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPgbouncer, startPgbouncer } from "./pgbouncer.ts";
import type { Pgbouncer } from "./pgbouncer.ts";
import { freshSchema, noServer, serverUrl } from "./postgres-harness.ts";
import { openHandle, says, urlThrough } from "./scene.ts";
import { suiteFolder } from "./temp-folder.ts";

const sessionIds = Array.from({ length: 64 }, (_, index) => `session-${index}`);
const runner = { instanceId: "i", host: "h", bootId: "b", pid: 1, runnerId: "runner" };

/** A turn of three steps, from the input to the end. */
async function runTurn(store: StateStore, sessionId: string): Promise<void> {
  const turnId = systemHost.random.id();
  await store.inbox.offer({ sessionId, inputId: turnId, text: "Good morning", onBusy: "wait", runner });
  const holder = { ...runner, holderId: turnId };
  const begin = { turnId, runnerId: runner.runnerId };
  const answer = await store.leases.acquire({ sessionId, holder, ttlMs: 60_000, begin });
  if (answer.kind !== "granted") throw new Error(`It was answered ${answer.kind}.`);
  const grant = { sessionId, holderId: turnId, fencingToken: answer.fencingToken };
  for (const step of [1, 2, 3]) await store.transcript.append({ grant, turnId, entries: [says(`${turnId}-${step}`)] });
  await store.turns.end({ grant, turnId, outcome: "answered", release: true });
}

/** Those that have not exactly one turn, or not a sound one. */
async function unsoundOf(store: StateStore): Promise<readonly string[]> {
  const records = await Promise.all(sessionIds.map((sessionId) => store.sessions.records(sessionId)));
  return sessionIds.filter((_, index) => {
    const one = records[index];
    return one?.turns.length !== 1 || one.entries.length !== 4 || verifyRecords(one).length > 0;
  });
}

/** How many connections of this name there are, at most, until the work is done. */
async function mostConnections(name: string, work: Promise<unknown>): Promise<number> {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  let isDone = false;
  const done = work.finally(() => (isDone = true));
  let most = 0;
  do {
    const text = "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE application_name = $1";
    const { rows } = await admin.query<{ count: number }>({ text, values: [name] });
    most = Math.max(most, rows[0]?.count ?? 0);
  } while (!isDone);
  await done;
  await admin.end();
  return most;
}

describe.skipIf(noServer)("64 sessions at once on one handle", () => {
  test("have their turns on no more connections than it may open", async () => {
    const name = `bounded ${freshSchema()}`;
    const url = new URL(serverUrl);
    url.searchParams.set("application_name", name);
    const store = await openHandle(url.href, { schema: freshSchema(), connectionsMax: 4 });
    const work = Promise.all(sessionIds.map((sessionId) => runTurn(store, sessionId)));
    const most = await mostConnections(name, work);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(4);
    expect(await unsoundOf(store)).toEqual([]);
  }, 60_000);
});

// Needs pgbouncer beside the server.
describe.skipIf(noServer || findPgbouncer() === undefined)("behind PgBouncer in transaction mode", () => {
  const folder = suiteFolder();
  let pooler: Pgbouncer | undefined;
  beforeAll(async () => void (pooler = await startPgbouncer(folder(), serverUrl, 3)), 30_000);
  afterAll(() => pooler?.close());
  const pooled = (): string => urlThrough(pooler?.port ?? 0);

  test("64 sessions share three connections of the server, from two handles that write in turn", async () => {
    const schema = freshSchema();
    const [a, b] = await Promise.all([openHandle(pooled(), { schema }), openHandle(pooled(), { schema })]);
    await Promise.all(sessionIds.map((sessionId, index) => runTurn(index % 2 === 0 ? a : b, sessionId)));
    expect(await unsoundOf(a)).toEqual([]);
  }, 60_000);

  test("wake-ups are found not to arrive, and arrive where there is a way to the server itself", async () => {
    const schema = freshSchema();
    const [deaf, hearing] = await Promise.all([
      openHandle(pooled(), { schema }),
      openHandle(pooled(), { schema, listenUrl: serverUrl }),
    ]);
    using deafness = deaf.listen(() => {});
    expect(await deafness.problem).toContain("pooler in transaction mode");
    using hearingIt = hearing.listen(() => {});
    expect(await hearingIt.problem).toBe(undefined);
  }, 60_000);
});
