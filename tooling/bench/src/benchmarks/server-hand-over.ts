import { findPostgres, startPostgres } from "@turnkeeper/postgres-server";
import pg from "pg";
import type { Benchmark, Case, Effort, Skipped } from "../benchmark.ts";
import { closedAfter } from "../closed-after.ts";
import type { Folder } from "../folder.ts";
import { pairCase } from "../pair.ts";
import type { Pair } from "../pair.ts";
import { missingPeers } from "../peers.ts";

const limit = "commit with NOTIFY, then update (raw pg)";
const ours = "end of turn to acquireTurnLease";
const oursPolled = "the same without wake-ups (looks each 250 ms)";
const advisory = "pg_advisory_lock that blocks, not durable";
const poll50 = "row, polled each 50 ms";
const poll250 = "row, polled each 250 ms";
const graphile = "graphile-worker, its defaults (LISTEN, looks each 2 s)";
const boss = "pg-boss, its defaults (looks each 2 s)";

/** A database for each pair: what one notifies wakes no other, and they lock and hold under one name. */
async function freshDatabase(serverUrl: string, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(serverUrl);
  url.pathname = name;
  return url.href;
}

async function open(folder: Folder, { isQuick }: Effort): Promise<readonly (Case | Skipped)[]> {
  if (findPostgres() === undefined) return [{ name: ours, skipped: "this machine has no PostgreSQL (PG_BIN)" }];
  // On the disk, with commits that wait for it.
  const server = await startPostgres({ fsync: true });
  const fast = { waitedMs: 20, count: isQuick ? 10 : 30 };
  const slowCount = isQuick ? 4 : 12;
  let pairCount = 0;
  const make = async (name: string, role: Case["role"], { settings, ...pair }: Pair): Promise<Case> => {
    const serverUrl = await freshDatabase(server.url, `pair_${++pairCount}`);
    return await pairCase({ name, role }, folder.fresh("pair"), { ...pair, settings: { ...settings, serverUrl } });
  };
  const cases = [
    await make(limit, "limit", { settings: { mechanism: "notify" }, ...fast }),
    await make(ours, "ours", { settings: { mechanism: "ours-on-server" }, ...fast }),
    await make(oursPolled, "ours", { settings: { mechanism: "ours-polled" }, waitedMs: 250, count: slowCount }),
    await make(advisory, "peer", { settings: { mechanism: "advisory-lock" }, ...fast }),
    await make(poll50, "peer", { settings: { mechanism: "server-poll", pollMs: 50 }, waitedMs: 50, count: fast.count }),
    await make(poll250, "peer", {
      settings: { mechanism: "server-poll", pollMs: 250 },
      waitedMs: 250,
      count: slowCount,
    }),
    missingPeers(graphile, "graphile-worker") ??
      (await make(graphile, "peer", { settings: { mechanism: "graphile-worker" }, ...fast })),
    missingPeers(boss, "pg-boss") ??
      (await make(boss, "peer", { settings: { mechanism: "pg-boss" }, waitedMs: 2_000, count: isQuick ? 1 : 3 })),
  ];
  return closedAfter(cases, () => server.close());
}

export const serverHandOver: Benchmark = {
  name: "server-hand-over",
  title:
    "two hosts on one PostgreSQL, the waiter already there: from the release in one to the acquire returned in the other",
  metrics: [{ name: "wait", unit: "ms", limit }],
  goals: [
    { of: ours, metric: "wait", against: { name: limit }, atMost: 4 },
    { of: ours, metric: "wait", against: { name: poll50 }, atMost: 0.4 },
    { of: ours, metric: "wait", against: { name: poll250 }, atMost: 0.1 },
    { of: ours, metric: "wait", against: { name: graphile }, atMost: 1.5 },
    { of: ours, metric: "wait", against: { name: boss }, atMost: 0.02, meaning: "50 times faster" },
    { of: oursPolled, metric: "wait", against: { name: poll250 }, atMost: 1.2 },
  ],
  roundCount: () => 5,
  open,
};
