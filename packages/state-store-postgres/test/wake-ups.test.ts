import { systemHost } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import type { PostgresStore, WakeUps } from "@turnkeeper/state-store-postgres";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { startCuttingProxy } from "./cutting-proxy.ts";
import { freshSchema, noServer, serverUrl } from "./postgres-harness.ts";
import { offer, openHandle, says, startTurn, urlThrough } from "./scene.ts";

/** The ids that a handle hears, as they come. */
interface Heard {
  readonly wakeUps: WakeUps;
  readonly all: readonly string[];
  next(): Promise<string>;
}

function listenTo(store: PostgresStore): Heard {
  const all: string[] = [];
  let read = 0;
  let wake = (): void => {};
  const wakeUps = store.listen((sessionId) => {
    all.push(sessionId);
    wake();
  });
  onTestFinished(() => wakeUps[Symbol.dispose]());
  return {
    wakeUps,
    all,
    next: async () => {
      while (all.length <= read) await new Promise<void>((resolve) => (wake = resolve));
      return all[read++] ?? "";
    },
  };
}

/** A wake-up of a session that nobody else uses comes behind all that was committed before. */
async function heardUntilNow(store: StateStore, heard: Heard): Promise<readonly string[]> {
  const sessionId = "marker";
  const turnId = systemHost.random.id();
  const runner = { instanceId: "i", host: "h", bootId: "b", pid: 1, runnerId: turnId };
  await store.inbox.offer({ sessionId, inputId: turnId, text: "mark", onBusy: "wait", runner });
  const holder = { ...runner, holderId: turnId };
  const begin = { turnId, runnerId: turnId };
  const answer = await store.leases.acquire({ sessionId, holder, ttlMs: 60_000, begin });
  if (answer.kind !== "granted") throw new Error(`It was answered ${answer.kind}.`);
  await store.turns.requestStop(sessionId, { hard: false, reason: "user-stop", by: "test" });
  const grant = { sessionId, holderId: turnId, fencingToken: answer.fencingToken };
  await store.turns.end({ grant, turnId, outcome: "interrupted", release: true });
  while ((await heard.next()) !== sessionId);
  return heard.all.filter((id) => id !== sessionId);
}

/** Asks the server again and again, until what it tells, or what it does, is as wanted. */
async function askUntil(isSo: (count: number) => boolean, text: string, values: readonly string[]): Promise<void> {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  for (;;) {
    const { rows } = await admin.query<{ count?: number }>({ text, values: [...values] });
    if (isSo(rows[0]?.count ?? 0)) break;
  }
  await admin.end();
}

function listeningCountBecomes(count: number, schema: string): Promise<void> {
  const text = "SELECT count(*)::integer FROM pg_stat_activity WHERE query = $1";
  return askUntil((found) => found === count, text, [`LISTEN "${schema}"`]);
}

describe.skipIf(noServer)("wake-ups", () => {
  test("reach another process in the transaction that frees the session for the head of its queue, asks a stop, or answers", async () => {
    const schema = freshSchema();
    const [a, b] = await Promise.all([openHandle(serverUrl, { schema }), openHandle(serverUrl, { schema })]);
    const heard = listenTo(b);
    expect(await heard.wakeUps.problem).toBe(undefined);
    const { grant, turnId } = await startTurn(a, "a");
    await offer(b, "input-b");
    expect(await heardUntilNow(a, heard)).toEqual([]);
    await a.turns.requestStop("session-1", { hard: false, reason: "user-stop", by: "test" });
    expect(await heardUntilNow(a, heard)).toEqual(["session-1"]);
    await a.turns.end({ grant, turnId, outcome: "interrupted", release: true });
    expect(await heardUntilNow(a, heard)).toEqual(["session-1", "session-1"]);
  });

  test("are not sent where nobody waits: notifying commits wait for each other all over the database", async () => {
    const schema = freshSchema();
    const store = await openHandle(serverUrl, { schema });
    const heard = listenTo(store);
    expect(await heard.wakeUps.problem).toBe(undefined);
    for (const name of ["a", "b"]) {
      const { grant, turnId } = await startTurn(store, name);
      await store.transcript.append({ grant, turnId, entries: [says(name)] });
      await store.turns.end({ grant, turnId, outcome: "answered", release: true });
    }
    expect(await heardUntilNow(store, heard)).toEqual([]);
  });

  test("that the server has no room for keep no write from being stored", async () => {
    const schema = freshSchema();
    const store = await openHandle(serverUrl, { schema });
    const { grant, turnId } = await startTurn(store, "a");
    await offer(store, "input-b");
    // What every commit that notifies is answered while somebody who listens stands still in a transaction, and the queue
    // is full of what he has not read: of so many gigabytes that a test cannot fill it.
    const admin = new pg.Client({ connectionString: serverUrl });
    await admin.connect();
    onTestFinished(() => admin.end());
    const { rows } = await admin.query<{ text: string }>({
      text: "SELECT pg_get_functiondef(to_regproc($1)) AS text",
      values: [`"${schema}".save_session`],
    });
    const full = "RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000';";
    const text = rows[0]?.text.replace(/PERFORM pg_notify\(.*?\);/, full) ?? "";
    expect(text).toContain(full);
    await admin.query(text);

    const stop = { hard: false, reason: "user-stop", by: "test" } as const;
    expect((await store.turns.requestStop("session-1", stop)).kind).toBe("requested");
    const end = await store.turns.end({ grant, turnId, outcome: "interrupted", release: true });
    expect(end.kind).toBe("ended");
    expect((await store.inbox.read("session-1", "input-b"))?.state).toBe("pending");
    const records = await store.sessions.records("session-1");
    expect(records && verifyRecords(records)).toEqual([]);
  });

  test("come again on another connection once theirs was cut", async () => {
    const schema = freshSchema();
    const cutting = await startCuttingProxy(Number(new URL(serverUrl).port));
    onTestFinished(() => cutting.close());
    const store = await openHandle(serverUrl, { schema, listenUrl: urlThrough(cutting.port) });
    const heard = listenTo(store);
    expect(await heard.wakeUps.problem).toBe(undefined);
    cutting.cutAll(false);
    // Nothing tells when it listens again: it is told until it hears.
    const next = heard.next();
    await askUntil(() => heard.all.length > 0, "SELECT pg_notify($1, 'session-1')", [schema]);
    expect(await next).toBe("session-1");
  });

  test("are one connection for all listeners of a handle, and none once the last is gone", async () => {
    const schema = freshSchema();
    const store = await openHandle(serverUrl, { schema });
    const first = store.listen(() => {});
    const second = store.listen(() => {});
    await Promise.all([first.problem, second.problem]);
    await listeningCountBecomes(1, schema);
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    await listeningCountBecomes(1, schema);
    second[Symbol.dispose]();
    await listeningCountBecomes(0, schema);
    const third = store.listen(() => {});
    onTestFinished(() => third[Symbol.dispose]());
    await listeningCountBecomes(1, schema);
    await store.close();
    await listeningCountBecomes(0, schema);
  });

  test("are not listened to where listenUrl is false, and say so", async () => {
    const store = await openHandle(serverUrl, { schema: freshSchema(), listenUrl: false });
    expect(await listenTo(store).wakeUps.problem).toContain("listenUrl is false");
  });

  test("that cannot be listened to say why, without the password", async () => {
    const away = new URL(serverUrl);
    away.port = "1";
    away.password = "secret-word";
    const store = await openHandle(serverUrl, { schema: freshSchema(), listenUrl: away.href });
    const problem = await listenTo(store).wakeUps.problem;
    expect(problem).toContain("could not be reached");
    expect(problem).not.toContain("secret-word");
  });
});
