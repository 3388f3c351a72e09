import { writeFileSync } from "node:fs";
import { systemHost } from "@turnkeeper/kernel";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { acquireTurnLease, openProcessPresence } from "@turnkeeper/turn-lease";
import type { Benchmark, Case, Effort, Skipped } from "../benchmark.ts";
import type { Folder } from "../folder.ts";
import { newHolder } from "../lease-holder.ts";
import { missingPeers, peer } from "../peers.ts";
import { openRaw, openTransaction } from "../raw-database.ts";
import { hasRedisServer, startRedisServer } from "../redis-server.ts";
import { timesOf } from "../stopwatch.ts";

const limit = "raw better-sqlite3";
const throughStore = "store.leases";
const throughLease = "acquireTurnLease";
const lockfileName = "proper-lockfile";
const redlockName = "redlock 4, one Redis, unix socket";
const ttlMs = 300_000;

/** 64 sessions in rotation: as many as a busy process has. */
const sessionOf = (index: number): string => `session-${index % 64}`;

const cycleCount = ({ isQuick }: Effort): number => (isQuick ? 150 : 400);

async function caseOf(
  facts: Pick<Case, "name" | "role" | "close">,
  effort: Effort,
  cycle: (index: number) => unknown,
  renew?: { readonly hold: () => Promise<unknown>; readonly act: (index: number) => unknown },
): Promise<Case> {
  const count = cycleCount(effort);
  // Every session is there, every statement is prepared and the code is compiled before anything is measured.
  await timesOf(count * 2, cycle);
  await renew?.hold();
  if (renew) await timesOf(count, renew.act);
  return {
    ...facts,
    measure: async () => ({
      cycle: await timesOf(count, cycle),
      ...(renew ? { renew: await timesOf(count, renew.act) } : {}),
    }),
  };
}

/** Two write transactions a cycle, one a renewal: the least that a durable row under a token needs. */
async function rawCase(folder: Folder, effort: Effort): Promise<Case> {
  const database = openRaw(folder.fresh("raw.db"), "NORMAL");
  database.exec(
    "CREATE TABLE lease (session_id TEXT PRIMARY KEY, holder TEXT, token INTEGER NOT NULL, expires_at REAL NOT NULL)",
  );
  const find = database.prepare<[string], { holder: string | null; token: number; expires_at: number }>(
    "SELECT holder, token, expires_at FROM lease WHERE session_id = ?",
  );
  const add = database.prepare("INSERT INTO lease VALUES (?, ?, 1, ?)");
  const grant = database.prepare("UPDATE lease SET holder = ?, token = token + 1, expires_at = ? WHERE session_id = ?");
  const free = database.prepare(
    "UPDATE lease SET holder = NULL, expires_at = 0 WHERE session_id = ? AND holder = ? AND token = ?",
  );
  const extend = database.prepare("UPDATE lease SET expires_at = ? WHERE session_id = ? AND holder = ? AND token = ?");
  const holder = `pid-${process.pid}`;
  let renewCount = 0;
  const transaction = openTransaction(database);
  const acquire = (sessionId: string): number =>
    transaction(() => {
      const nowMs = Date.now();
      const row = find.get(sessionId);
      if (!row) add.run(sessionId, holder, nowMs + ttlMs);
      else if (row.holder !== null && row.expires_at > nowMs) throw new Error("held");
      else grant.run(holder, nowMs + ttlMs, sessionId);
      return row ? row.token + 1 : 1;
    });
  const release = (sessionId: string, token: number): unknown => transaction(() => free.run(sessionId, holder, token));
  // A fraction of its own for each: a row that does not change is not written.
  const renew = (sessionId: string, token: number): unknown =>
    transaction(() => extend.run(Date.now() + ttlMs + ++renewCount / 1_000, sessionId, holder, token));
  let heldToken = 0;
  return caseOf(
    { name: limit, role: "limit", close: async () => void database.close() },
    effort,
    (index) => release(sessionOf(index), acquire(sessionOf(index))),
    { hold: async () => (heldToken = acquire("renewed")), act: () => renew("renewed", heldToken) },
  );
}

async function storeCase(folder: Folder, effort: Effort): Promise<Case> {
  const store = await openSqliteStore(folder.fresh("store.db"), { host: systemHost });
  const acquire = async (sessionId: string) => {
    const holder = newHolder();
    const answer = await store.leases.acquire({ sessionId, holder, ttlMs });
    if (answer.kind !== "granted") throw new Error(`The store answered ${answer.kind}.`);
    return { sessionId, holderId: holder.holderId, fencingToken: answer.fencingToken };
  };
  let held = { sessionId: "", holderId: "", fencingToken: 0 };
  return caseOf(
    { name: throughStore, role: "ours", close: () => store.close() },
    effort,
    async (index) => store.leases.release(await acquire(sessionOf(index))),
    { hold: async () => (held = await acquire("renewed")), act: () => store.leases.renew(held, ttlMs) },
  );
}

async function leaseCase(folder: Folder, effort: Effort): Promise<Case> {
  const store = await openSqliteStore(folder.fresh("lease.db"), { host: systemHost });
  const scheduler = createPeriodicScheduler({ host: systemHost });
  const presence = await openProcessPresence({ host: systemHost }, { socketFolder: folder.fresh("sockets") });
  const deps = { store: store.leases, inbox: store.inbox, scheduler, host: systemHost, presence };
  const close = async (): Promise<void> => {
    await scheduler.close();
    await presence.close();
    await store.close();
  };
  return caseOf({ name: throughLease, role: "ours", close }, effort, async (index) => {
    const answer = await acquireTurnLease(deps, sessionOf(index));
    if (answer.kind !== "granted") throw new Error(`acquireTurnLease answered ${answer.kind}.`);
    await answer.lease.release();
  });
}

async function lockfileCase(folder: Folder, effort: Effort): Promise<Case | Skipped> {
  const missing = missingPeers(lockfileName, "proper-lockfile");
  if (missing) return missing;
  const { lock } = peer("proper-lockfile");
  const path = folder.fresh("locked");
  for (let index = 0; index < 64; index++) writeFileSync(`${path}-${sessionOf(index)}`, "");
  return caseOf({ name: lockfileName, role: "peer", close: async () => {} }, effort, async (index) => {
    const release = await lock(`${path}-${sessionOf(index)}`);
    await release();
  });
}

async function redlockCase(folder: Folder, effort: Effort): Promise<Case | Skipped> {
  const missing = missingPeers(redlockName, "redlock", "ioredis");
  if (missing) return missing;
  if (!hasRedisServer()) return { name: redlockName, skipped: "redis-server is not on the PATH" };
  const server = await startRedisServer(folder.fresh("redis"));
  const client = new (peer("ioredis").Redis)({ path: server.socketPath });
  const redlock = new (peer("redlock"))([client]);
  const close = async (): Promise<void> => {
    await client.quit();
    await server.close();
  };
  let held: Awaited<ReturnType<typeof redlock.lock>> | undefined;
  return caseOf(
    { name: redlockName, role: "peer", close },
    effort,
    async (index) => {
      const lock = await redlock.lock(sessionOf(index), ttlMs);
      await lock.unlock();
    },
    { hold: async () => (held = await redlock.lock("renewed", ttlMs)), act: () => held?.extend(ttlMs) },
  );
}

export const lease: Benchmark = {
  name: "lease",
  title: "a lease that nobody contends for: acquire + release (two write transactions), and renew (one)",
  metrics: [
    { name: "cycle", unit: "µs", limit },
    { name: "renew", unit: "µs", limit },
  ],
  goals: [
    { of: throughStore, metric: "cycle", against: { name: limit }, atMost: 2, isCpuBound: true },
    { of: throughStore, metric: "renew", against: { name: limit }, atMost: 2, isCpuBound: true },
    { of: throughLease, metric: "cycle", against: { name: limit }, atMost: 2 },
    { of: throughStore, metric: "cycle", against: { name: limit }, statistic: "p99", atMost: 1.5 },
    { of: throughStore, metric: "cycle", against: { name: redlockName }, atMost: 0.75 },
    { of: throughStore, metric: "cycle", against: { name: lockfileName }, atMost: 0.2 },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 5 : 9),
  open: async (folder, effort) => [
    await rawCase(folder, effort),
    await storeCase(folder, effort),
    await leaseCase(folder, effort),
    await lockfileCase(folder, effort),
    await redlockCase(folder, effort),
  ],
};
