import type { Benchmark, Case, Effort, Skipped } from "../benchmark.ts";
import type { Folder } from "../folder.ts";
import { pairCase } from "../pair.ts";
import type { Pair } from "../pair.ts";
import { missingPeers } from "../peers.ts";
import { hasRedisServer, startRedisServer } from "../redis-server.ts";

const limit = "unix socket ping, nothing else";
const durableLimit = "commit, ping, commit (FULL)";
const ours = "end of turn to acquireTurnLease";
const poll50 = "sqlite row, polled each 50 ms";
const poll250 = "sqlite row, polled each 250 ms";
const lockfile100 = "proper-lockfile, retries each 100 ms";
const lockfileDefault = "proper-lockfile, its own back-off (1 s, doubling)";
const redlockName = "redlock 4, its defaults (200 ± 100 ms)";

async function redlockCase(folder: Folder, count: number): Promise<Case | Skipped> {
  const missing = missingPeers(redlockName, "redlock", "ioredis");
  if (missing) return missing;
  if (!hasRedisServer()) return { name: redlockName, skipped: "redis-server is not on the PATH" };
  const server = await startRedisServer(folder.fresh("redis"));
  const pair = { settings: { mechanism: "redlock", redisSocket: server.socketPath }, waitedMs: 200, count } as const;
  const one = await pairCase({ name: redlockName, role: "peer" }, folder.fresh("redlock"), pair);
  return {
    ...one,
    close: async () => {
      await one.close();
      await server.close();
    },
  };
}

async function open(folder: Folder, { isQuick }: Effort): Promise<readonly (Case | Skipped)[]> {
  const fast = { waitedMs: 20, count: isQuick ? 10 : 30 };
  const slowCount = isQuick ? 2 : 8;
  const make = (name: string, role: Case["role"], pair: Pair): Promise<Case> =>
    pairCase({ name, role }, folder.fresh("pair"), pair);
  const lockfile = (name: string, pair: Pair): Promise<Case | Skipped> | Skipped =>
    missingPeers(name, "proper-lockfile") ?? make(name, "peer", pair);
  const every100 = { retries: 1_000, factor: 1, minTimeout: 100, maxTimeout: 100 };
  return [
    await make(limit, "limit", { settings: { mechanism: "ping" }, ...fast }),
    await make(durableLimit, "limit", { settings: { mechanism: "durable-ping" }, ...fast }),
    await make(ours, "ours", { settings: { mechanism: "ours" }, ...fast }),
    await make(poll50, "peer", { settings: { mechanism: "sqlite-poll", pollMs: 50 }, waitedMs: 50, count: slowCount }),
    await make(poll250, "peer", {
      settings: { mechanism: "sqlite-poll", pollMs: 250 },
      waitedMs: 250,
      count: slowCount,
    }),
    await lockfile(lockfile100, {
      settings: { mechanism: "proper-lockfile", retries: every100 },
      waitedMs: 100,
      count: slowCount,
    }),
    await lockfile(lockfileDefault, {
      settings: { mechanism: "proper-lockfile", retries: { retries: 20 } },
      waitedMs: 500,
      count: isQuick ? 1 : 2,
    }),
    await redlockCase(folder, slowCount),
  ];
}

export const handOver: Benchmark = {
  name: "hand-over",
  title: "two processes, the waiter already there: from the release in one to the acquire returned in the other",
  metrics: [{ name: "wait", unit: "ms", limit: durableLimit }],
  goals: [
    { of: ours, metric: "wait", atMost: 1.5, meaning: "milliseconds" },
    { of: ours, metric: "wait", statistic: "p99", atMost: 10, meaning: "milliseconds" },
    { of: ours, metric: "wait", against: { name: durableLimit }, atMost: 4 },
    { of: ours, metric: "wait", against: { name: poll50 }, atMost: 0.1 },
    { of: ours, metric: "wait", against: { name: lockfile100 }, atMost: 0.02, meaning: "50 times faster" },
    { of: ours, metric: "wait", against: { name: redlockName }, atMost: 0.02, meaning: "50 times faster" },
  ],
  roundCount: () => 5,
  open,
};
