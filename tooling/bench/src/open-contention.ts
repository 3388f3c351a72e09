import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openPing, openSocketEnd } from "./contention-limits.ts";
import { peer } from "./peers.ts";
import { openRaw } from "./raw-database.ts";
import { openAdvisoryLock, openGraphileWorker, openNotify, openPgBoss, openServerPoll } from "./server-contention.ts";
import { openOnFile, openOnServer } from "./turn-contention.ts";
import { sessionId, ttlMs } from "./contention.ts";
import type { ContenderSettings, Contention } from "./contention.ts";

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
      return openOnFile(settings);
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
    case "ours-on-server":
      return openOnServer(settings, true);
    case "ours-polled":
      return openOnServer(settings, false);
    case "notify":
      return openNotify(settings);
    case "advisory-lock":
      return openAdvisoryLock(settings);
    case "server-poll":
      return openServerPoll(settings);
    case "graphile-worker":
      return openGraphileWorker(settings);
    case "pg-boss":
      return openPgBoss(settings);
  }
}
