import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { systemHost } from "@turnkeeper/kernel";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { acquireTurnLease, openProcessPresence } from "@turnkeeper/turn-lease";
import { openPing, openSocketEnd } from "./contention-limits.ts";
import { peer } from "./peers.ts";
import { openRaw } from "./raw-database.ts";

/** How processes compete for one session. */
export type Mechanism = "ours" | "ping" | "durable-ping" | "socket-end" | "sqlite-poll" | "proper-lockfile" | "redlock";

export interface ContenderSettings {
  readonly mechanism: Mechanism;
  readonly folder: string;
  readonly name: string;
  /** Of `sqlite-poll`. */
  readonly pollMs?: number;
  /** Of `proper-lockfile`. */
  readonly retries?: Readonly<Record<string, number>>;
  /** Of `redlock`. */
  readonly redisSocket?: string;
}

export interface Contention {
  acquire(isFree: boolean): Promise<void>;
  release(): Promise<void>;
  close(): Promise<void>;
}

const sessionId = "contended";
const ttlMs = 300_000;

/** As an agent does it: the input is stored, the grant begins its turn, the end of the turn frees the session. */
async function openOurs({ folder, name }: ContenderSettings): Promise<Contention> {
  const host = systemHost;
  const store = await openSqliteStore(join(folder, "state.db"), { host });
  const presence = await openProcessPresence({ host }, { socketFolder: join(folder, "sockets") });
  const scheduler = createPeriodicScheduler({ host });
  const deps = { store: store.leases, inbox: store.inbox, scheduler, host, presence };
  const runner = { ...presence.identity, runnerId: host.random.id() };
  const registration = presence.register(runner.runnerId);
  let turnCount = 0;
  let held: { readonly turnId: string; readonly answer: Awaited<ReturnType<typeof acquireTurnLease>> } | undefined;
  return {
    acquire: async () => {
      const turnId = `${name}-${process.pid}-${++turnCount}`;
      await store.inbox.offer({ sessionId, inputId: turnId, text: "Good morning", onBusy: "wait", runner });
      const answer = await acquireTurnLease(deps, sessionId, { ttlMs, begin: { turnId, runnerId: runner.runnerId } });
      held = { turnId, answer };
    },
    release: async () => {
      if (held?.answer.kind !== "granted") throw new Error(`acquireTurnLease answered ${held?.answer.kind}.`);
      const { turnId, answer } = held;
      const { grant } = answer.lease;
      await answer.lease.release(() => store.turns.end({ grant, turnId, outcome: "answered", release: true }));
    },
    close: async () => {
      registration[Symbol.dispose]();
      await scheduler.close();
      await presence.close();
      await store.close();
    },
  };
}

function openSqlitePoll({ folder, name, pollMs = 250 }: ContenderSettings): Contention {
  const database = openRaw(join(folder, "poll.db"), "NORMAL");
  database.exec(
    "CREATE TABLE IF NOT EXISTS lease (session_id TEXT PRIMARY KEY, holder TEXT, token INTEGER NOT NULL, expires_at REAL NOT NULL)",
  );
  const look = database.prepare("SELECT 1 FROM lease WHERE session_id = ? AND holder IS NOT NULL AND expires_at > ?");
  const take = database.prepare(
    `INSERT INTO lease VALUES (?, ?, 1, ?) ON CONFLICT (session_id) DO UPDATE SET holder = excluded.holder,
       token = token + 1, expires_at = excluded.expires_at WHERE holder IS NULL OR expires_at <= ?`,
  );
  const free = database.prepare("UPDATE lease SET holder = NULL WHERE session_id = ? AND holder = ?");
  const isTaken = (): boolean => {
    const nowMs = Date.now();
    // A read first: whoever waits takes no write lock.
    return !look.get(sessionId, nowMs) && take.run(sessionId, name, nowMs + ttlMs, nowMs).changes === 1;
  };
  return {
    acquire: async () => {
      while (!isTaken()) await pause(pollMs);
    },
    release: async () => void free.run(sessionId, name),
    close: async () => void database.close(),
  };
}

function openProperLockfile({ folder, retries }: ContenderSettings): Contention {
  const { lock } = peer("proper-lockfile");
  const file = join(folder, "locked");
  writeFileSync(file, "", { flag: "a" });
  let release = async (): Promise<void> => {};
  return {
    acquire: async () => void (release = await lock(file, retries ? { retries } : {})),
    release: () => release(),
    close: async () => {},
  };
}

function openRedlock({ redisSocket = "" }: ContenderSettings): Contention {
  const client = new (peer("ioredis").Redis)({ path: redisSocket });
  // Patience without end, and everything else as it comes: 200 ms between two tries, give or take 100.
  const redlock = new (peer("redlock"))([client], { retryCount: 1_000_000 });
  let held: Awaited<ReturnType<typeof redlock.lock>> | undefined;
  return {
    acquire: async () => void (held = await redlock.lock(sessionId, ttlMs)),
    release: async () => {
      await held?.unlock();
    },
    close: async () => void (await client.quit()),
  };
}

export async function openContention(settings: ContenderSettings): Promise<Contention> {
  switch (settings.mechanism) {
    case "ours":
      return openOurs(settings);
    case "ping":
    case "durable-ping":
      return openPing(settings);
    case "socket-end":
      return openSocketEnd(settings);
    case "sqlite-poll":
      return openSqlitePoll(settings);
    case "proper-lockfile":
      return openProperLockfile(settings);
    case "redlock":
      return openRedlock(settings);
  }
}
