import { join } from "node:path";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import Database from "better-sqlite3";
import { afterEach, expect, test, vi } from "vitest";
import { Connection } from "../src/connection.ts";
import { grantTo, keysOf, runnerOf, says, turnOf } from "./scene.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();
const pathOf = (): string => join(folder(), "state.db");
const host = virtualHost();

afterEach(() => expect(host.pendingTimerCount()).toBe(0));

/** Another process, as SQLite sees it: a connection that has taken the write lock. */
function lockHolder(): { free(): void } {
  const database = new Database(pathOf());
  database.exec("BEGIN IMMEDIATE");
  return {
    free: () => {
      database.exec("ROLLBACK");
      database.close();
    },
  };
}

/** Whether the promise has settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol("pending");
  return (await Promise.race([promise.catch(() => undefined), Promise.resolve(pending)])) !== pending;
}

test("a write waits in await while another process has the lock, and is done when the lock is free", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant, turnId } = await turnOf(store, "a");
  const holder = lockHolder();
  const append = store.transcript.append({ grant, turnId, entries: [says("key")] });
  await host.advance(300);
  expect(await isSettled(append)).toBe(false);
  // Reads wait for nobody.
  expect(await store.leases.read("session-1")).toMatchObject({ fencingToken: grant.fencingToken });
  holder.free();
  await host.advance(64);
  expect(await append).toMatchObject({ kind: "committed" });
  await store.close();
});

test("rule 7.7: calls keep their order while they wait: a release never overtakes an append", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant, turnId } = await turnOf(store, "a");
  const holder = lockHolder();
  const order: string[] = [];
  const append = store.transcript.append({ grant, turnId, entries: [says("key")] }).finally(() => order.push("append"));
  const end = store.turns.end({ grant, turnId, outcome: "answered", release: false }).finally(() => order.push("end"));
  const release = store.leases.release(grant).finally(() => order.push("release"));
  await host.advance(500);
  holder.free();
  await host.advance(64);
  expect(await Promise.all([append, end, release])).toMatchObject([
    { kind: "committed" },
    { kind: "ended" },
    { kind: "released" },
  ]);
  expect(order).toEqual(["append", "end", "release"]);
  await store.close();
});

test("a close lets the calls finish that wait for the lock", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant, turnId } = await turnOf(store, "a");
  const holder = lockHolder();
  const append = store.transcript.append({ grant, turnId, entries: [says("key")] });
  const close = store.close();
  await expect(store.leases.renew(grant, 60_000)).rejects.toMatchObject({ code: "STORE_CLOSED" });
  await host.advance(100);
  expect(await isSettled(close)).toBe(false);
  holder.free();
  await host.advance(64);
  expect(await append).toMatchObject({ kind: "committed" });
  await close;
  const again = await openSqliteStore(pathOf(), { host });
  expect(await keysOf(again)).toEqual(["key"]);
  await again.close();
});

test("patience ends by the kind of call, each in its own time wherever it stands, with a healthy store named", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant, turnId } = await turnOf(store, "a");
  // Not a real lock: SQLite would wait its 5 ms in each of two thousand attempts.
  const begin = vi.spyOn(Connection.prototype, "begin").mockImplementation(() => {
    throw Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
  });
  const sinceMs = host.clock.monotonicMs();
  const waited: Record<string, number> = {};
  const failing = async (name: string, call: Promise<unknown>): Promise<void> => {
    await expect(call).rejects.toMatchObject({
      code: "STORE_BUSY",
      message: expect.stringMatching(/healthy but busy.*Nothing was written/),
    });
    waited[name] = host.clock.monotonicMs() - sinceMs;
  };
  const calls = Promise.all([
    failing("append", store.transcript.append({ grant, turnId, entries: [says("key")] })),
    failing("end", store.turns.end({ grant, turnId, outcome: "answered", release: true })),
    failing(
      "offer",
      store.inbox.offer({ sessionId: "s", inputId: "i", text: "t", onBusy: "wait", runner: runnerOf("a") }),
    ),
    failing("acquire", grantTo(store, "b", "session-2")),
    failing("renew", store.leases.renew(grant, 60_000)),
  ]);
  await host.advance(61_000);
  await calls;
  const overshootMs = 64;
  for (const [name, patienceMs] of [
    ["append", 60_000],
    ["end", 60_000],
    ["offer", 20_000],
    ["acquire", 20_000],
    ["renew", 5_000],
  ] as const) {
    expect(waited[name], `${name} waited`).toBeGreaterThanOrEqual(patienceMs);
    expect(waited[name], `${name} waited`).toBeLessThanOrEqual(patienceMs + overshootMs);
  }
  begin.mockRestore();
  expect(await store.leases.renew(grant, 60_000)).toEqual({ kind: "renewed" });
  expect(await keysOf(store)).toEqual([]);
  await store.close();
});

test("a store that is sealed tells the calls that met the fault what it was, and the next that it is sealed", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const { grant, turnId } = await turnOf(store, "a");
  const holder = lockHolder();
  const append = store.transcript.append({ grant, turnId, entries: [says("key")] });
  const renew = store.leases.renew(grant, 60_000);
  const settled = Promise.allSettled([append, renew]);
  await host.advance(100);
  holder.free();
  vi.spyOn(Connection.prototype, "commit").mockImplementationOnce(() => {
    throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_FSYNC" });
  });
  await host.advance(64);
  expect(await settled).toMatchObject(
    [
      { reason: { code: "STORE_IO", context: { isIndeterminate: true }, message: /append to session/ } },
      { reason: { code: "STORE_IO", context: { isIndeterminate: true }, message: /renew/ } },
    ].map(({ reason }) => ({ reason: { ...reason, message: expect.stringMatching(reason.message) } })),
  );
  await expect(store.leases.renew(grant, 60_000)).rejects.toMatchObject({
    code: "STORE_IO",
    context: { isIndeterminate: false },
    message: expect.stringMatching(/is sealed/),
  });
  await store.close();
});

test("opening a store that is up to date does not wait for somebody else's lock", async () => {
  await (await openSqliteStore(pathOf(), { host })).close();
  const holder = lockHolder();
  const store = await openSqliteStore(pathOf(), { host });
  expect(await store.leases.read("session-1")).toBe(undefined);
  holder.free();
  await store.close();
});

test("pauses are drawn with full jitter and never longer than 64 ms; SQLite itself waits 5 ms at most", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const grant = await grantTo(store, "a");
  const begin = vi.spyOn(Connection.prototype, "begin").mockImplementation(() => {
    throw Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY_SNAPSHOT" });
  });
  const pauses: number[] = [];
  const after = vi.spyOn(host.timers, "after");
  const renewed = store.leases.renew(grant, 60_000);
  await host.advance(4_000);
  for (const [ms] of after.mock.calls) pauses.push(ms);
  begin.mockRestore();
  await host.advance(64);
  await renewed;
  expect(pauses.length).toBeGreaterThan(64);
  for (const [index, ms] of pauses.entries()) expect(ms).toBeLessThanOrEqual(Math.min(2 ** index, 64));
  expect(Math.min(...pauses)).toBeLessThan(8);
  expect(Math.max(...pauses)).toBeGreaterThan(56);

  const connection = new Connection(pathOf(), "write");
  expect(connection.pragma("busy_timeout")).toBe(5);
  connection.close();
  await store.close();
});

test("turn data and inputs are committed at FULL, lease traffic at NORMAL, what settles a turn at FULL", async () => {
  const store = await openSqliteStore(pathOf(), { host });
  const begin = vi.spyOn(Connection.prototype, "begin");
  const levelsOf = async (call: () => Promise<unknown>): Promise<unknown[]> => {
    begin.mockClear();
    await call();
    return begin.mock.calls.map(([level]) => level);
  };
  const session = "session-1";
  const runner = runnerOf("a");
  const offer = { sessionId: session, inputId: "i", text: "t", onBusy: "wait", runner } as const;
  expect(await levelsOf(() => store.inbox.offer(offer))).toEqual(["full"]);
  const holder = { ...runner, holderId: "holder-a" };
  const ask = { sessionId: session, holder, ttlMs: 1_000 };
  const beginTurn = { turnId: "turn-a", runnerId: runner.runnerId };
  expect(await levelsOf(() => store.leases.acquire({ ...ask, begin: beginTurn }))).toEqual(["full"]);
  const grant = { sessionId: session, holderId: "holder-a", fencingToken: 1 };
  expect(await levelsOf(() => store.leases.renew(grant, 1_000))).toEqual(["normal"]);
  expect(await levelsOf(() => store.transcript.append({ grant, turnId: "turn-a", entries: [says("k")] }))).toEqual([
    "full",
  ]);
  expect(
    await levelsOf(() => store.turns.requestStop(session, { hard: false, reason: "user-stop", by: "test" })),
  ).toEqual(["full"]);

  // The lease runs out with its turn unfinished: whoever is granted next settles it.
  await host.advance(1_001);
  const next = { ...ask, holder: { ...holder, holderId: "holder-b" } };
  expect(await levelsOf(() => store.leases.acquire(next))).toEqual(["normal", "full"]);
  expect(await store.turns.read(session, "turn-a")).toMatchObject({ state: "ended", reason: "crashed" });
  const second = { sessionId: session, holderId: "holder-b", fencingToken: 2 };
  expect(await levelsOf(() => store.leases.release(second))).toEqual(["normal"]);

  // So does a holder that frees the session without ending its turn.
  const { grant: third } = await turnOf(store, "c");
  expect(await levelsOf(() => store.leases.release(third))).toEqual(["normal", "full"]);
  expect(await store.turns.read(session, "turn-c")).toMatchObject({ state: "ended", reason: "crashed" });
  await store.close();
});

test("rule 7.8: the level is set before the transaction begins, and a rollback journal gets the one that makes its unlinking durable", async () => {
  await (await openSqliteStore(pathOf(), { host })).close();
  const connection = new Connection(pathOf(), "write");
  const levels: unknown[] = [];
  for (const durability of ["full", "normal", "full"] as const) {
    connection.begin(durability);
    levels.push(connection.pragma("synchronous"));
    connection.rollback();
  }
  expect(levels).toEqual([2, 1, 2]);
  expect(connection.pragma("temp_store")).toBe(2);
  expect(connection.pragma("mmap_size")).toBe(0);
  expect(connection.pragma("foreign_keys")).toBe(1);
  expect(connection.pragma("journal_size_limit")).toBe(64 * 1024 * 1024);
  connection.close();

  const rollbackPath = join(folder(), "rollback.db");
  await (await openSqliteStore(rollbackPath, { host }, { journalMode: "delete" })).close();
  const rollback = new Connection(rollbackPath, "write");
  rollback.begin("full");
  expect(rollback.pragma("synchronous")).toBe(3);
  rollback.rollback();
  rollback.close();
});

test("rule 7.8: a write has the lock from its beginning, whatever it reads first", async () => {
  await (await openSqliteStore(pathOf(), { host })).close();
  const [first, second] = [new Connection(pathOf(), "write"), new Connection(pathOf(), "write")];
  first.begin("normal");
  expect(() => second.begin("normal")).toThrow(/locked/);
  first.rollback();
  first.close();
  second.close();
});
