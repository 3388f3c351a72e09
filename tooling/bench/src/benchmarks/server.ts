import { systemHost } from "@turnkeeper/kernel";
import { findPostgres, startPostgres } from "@turnkeeper/postgres-server";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import pg from "pg";
import type { Benchmark, Case, Effort, Skipped } from "../benchmark.ts";
import { closedAfter } from "../closed-after.ts";
import type { Folder } from "../folder.ts";
import { beginTurn, kilobyte, newHolder, userDraft } from "../lease-holder.ts";
import type { RunningGrant } from "../lease-holder.ts";
import { missingPeers, peer } from "../peers.ts";
import { nowNs, timesOf } from "../stopwatch.ts";

const limit = "raw pg, a statement each";
const ours = "store on PostgreSQL";
const advisory = "pg advisory lock, not durable";
const graphile = "graphile-worker, a job's cycle";
const boss = "pg-boss, a job's cycle";
const concurrencies = [1, 8, 64];
const connectionsMax = 10;
const ttlMs = 3_600_000;
const appendCount = ({ isQuick }: Effort): number => (isQuick ? 128 : 384);
const cycleCount = ({ isQuick }: Effort): number => (isQuick ? 50 : 200);
const sessionOf = (index: number): string => `session-${index % 64}`;

interface Acts {
  /** Takes a session, or a job, and gives it back. */
  readonly cycle: (index: number) => Promise<unknown>;
  readonly append?: (sessionId: string) => Promise<unknown>;
  readonly close: () => Promise<unknown>;
}

async function caseOf(
  facts: Pick<Case, "name" | "role">,
  effort: Effort,
  { cycle, append, close }: Acts,
): Promise<Case> {
  const appendMany = async (): Promise<Record<string, readonly number[]>> => {
    if (!append) return {};
    const samples: Record<string, readonly number[]> = {};
    for (const concurrency of concurrencies) {
      const timesEach = appendCount(effort) / concurrency;
      const beforeNs = nowNs();
      const session = async (index: number): Promise<void> => {
        for (let time = 0; time < timesEach; time++) await append(`append-${index}`);
      };
      await Promise.all(Array.from({ length: concurrency }, (_, index) => session(index)));
      samples[`append, ${concurrency} at once`] = [(nowNs() - beforeNs) / 1_000 / appendCount(effort)];
    }
    return samples;
  };
  const measure = async (): Promise<Record<string, readonly number[]>> => ({
    cycle: await timesOf(cycleCount(effort), cycle),
    ...(await appendMany()),
  });
  await measure();
  return { ...facts, measure, close: async () => void (await close()) };
}

/** The least that is durable and fenced: one update takes, one frees, and one statement fences and appends. */
async function rawActs(url: string): Promise<Acts> {
  const pool = new pg.Pool({ connectionString: url, max: connectionsMax });
  await pool.query(`CREATE SCHEMA raw;
    CREATE TABLE raw.lease (session_id text PRIMARY KEY, holder text, token bigint NOT NULL, expires_at timestamptz);
    CREATE TABLE raw.message (message_id bigserial PRIMARY KEY, session_id text NOT NULL, body text NOT NULL);
    CREATE INDEX ON raw.message (session_id, message_id)`);
  const take = `INSERT INTO raw.lease VALUES ($1, 'holder', 1, now() + interval '1 hour') ON CONFLICT (session_id) DO UPDATE
    SET holder = 'holder', token = raw.lease.token + 1, expires_at = now() + interval '1 hour'
    WHERE raw.lease.holder IS NULL OR raw.lease.expires_at < clock_timestamp() RETURNING token`;
  const free = "UPDATE raw.lease SET holder = NULL WHERE session_id = $1 AND holder = 'holder' AND token = $2";
  const add = `INSERT INTO raw.message (session_id, body)
    SELECT $1, $2 FROM raw.lease WHERE session_id = 'session-0' AND token > 0`;
  return {
    cycle: async (index) => {
      const { rows } = await pool.query<{ token: string }>(take, [sessionOf(index)]);
      await pool.query(free, [sessionOf(index), rows[0]?.token]);
    },
    append: (sessionId) => pool.query(add, [sessionId, kilobyte]),
    close: () => pool.end(),
  };
}

async function ourActs(url: string): Promise<Acts> {
  const store = await openPostgresStore(url, { host: systemHost }, { connectionsMax });
  const running = new Map<string, RunningGrant>();
  for (let index = 0; index < 64; index++) running.set(`append-${index}`, await beginTurn(store, `append-${index}`));
  let count = 0;
  return {
    cycle: async (index) => {
      const [sessionId, holder] = [sessionOf(index), newHolder()];
      const answer = await store.leases.acquire({ sessionId, holder, ttlMs });
      if (answer.kind !== "granted") throw new Error(`The store answered ${answer.kind}.`);
      await store.leases.release({ sessionId, holderId: holder.holderId, fencingToken: answer.fencingToken });
    },
    append: async (sessionId) => {
      const one = running.get(sessionId);
      if (!one) throw new Error(`Session ${sessionId} was not opened.`);
      const answer = await store.transcript.append({ ...one, entries: [userDraft(`entry-${++count}`)] });
      if (answer.kind !== "committed") throw new Error(`The store answered ${answer.kind}.`);
    },
    close: () => store.close(),
  };
}

async function advisoryActs(url: string): Promise<Acts> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    cycle: async (index) => {
      await client.query("SELECT pg_advisory_lock($1)", [index % 64]);
      await client.query("SELECT pg_advisory_unlock($1)", [index % 64]);
    },
    close: () => client.end(),
  };
}

async function graphileActs(url: string): Promise<Acts> {
  const { makeWorkerUtils, runTaskListOnce, Logger } = peer("graphile-worker");
  const logger = new Logger(() => () => {});
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on("error", () => {});
  pool.on("connect", (client) => void client.on("error", () => {}));
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  return {
    cycle: async (index) => {
      await utils.addJob("turn", { index });
      const client = await pool.connect();
      await runTaskListOnce({ logger }, { turn: async () => {} }, client);
      client.release();
    },
    close: async () => {
      await utils.release();
      await pool.end();
    },
  };
}

async function bossActs(url: string): Promise<Acts> {
  const Boss = peer("pg-boss");
  const one = new Boss({ connectionString: url, max: 2, supervise: false, schedule: false });
  await one.start();
  await one.createQueue("turn");
  return {
    cycle: async (index) => {
      await one.send("turn", { index });
      const [job] = await one.fetch("turn");
      if (!job) throw new Error("pg-boss fetched no job.");
      await one.complete("turn", job.id);
    },
    close: () => one.stop({ graceful: false }),
  };
}

async function open(_folder: Folder, effort: Effort): Promise<readonly (Case | Skipped)[]> {
  if (findPostgres() === undefined) return [{ name: ours, skipped: "this machine has no PostgreSQL (PG_BIN)" }];
  // On the disk, with commits that wait for it.
  const server = await startPostgres({ fsync: true });
  const cases = [
    await caseOf({ name: limit, role: "limit" }, effort, await rawActs(server.url)),
    await caseOf({ name: ours, role: "ours" }, effort, await ourActs(server.url)),
    await caseOf({ name: advisory, role: "peer" }, effort, await advisoryActs(server.url)),
  ];
  const jobs = [
    missingPeers(graphile, "graphile-worker") ??
      (await caseOf({ name: graphile, role: "peer" }, effort, await graphileActs(server.url))),
    missingPeers(boss, "pg-boss") ?? (await caseOf({ name: boss, role: "peer" }, effort, await bossActs(server.url))),
  ];
  return closedAfter([...cases, ...jobs], () => server.close());
}

export const server: Benchmark = {
  name: "server",
  title:
    "on one PostgreSQL: a lease taken and given back, beside a job's cycle; appends of 1 KB from 1, 8 and 64 sessions",
  metrics: [
    { name: "cycle", unit: "µs", limit },
    ...concurrencies.map((concurrency) => ({ name: `append, ${concurrency} at once`, unit: "µs", limit })),
  ],
  goals: [
    { of: ours, metric: "cycle", against: { name: limit }, atMost: 3 },
    { of: ours, metric: "cycle", against: { name: graphile }, atMost: 1 },
    { of: ours, metric: "append, 1 at once", against: { name: limit }, atMost: 2 },
    { of: ours, metric: "append, 64 at once", against: { name: limit }, atMost: 2 },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 3 : 7),
  open,
};
