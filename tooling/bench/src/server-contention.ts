import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { sessionId, ttlMs } from "./contention.ts";
import type { ContenderSettings, Contention } from "./contention.ts";
import { peer } from "./peers.ts";

const channel = "freed";
/** Names the lock among those of the database. */
const lockNo = 1;

async function connected(serverUrl: string | undefined): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  return client;
}

/** One row with holder, token and expiry; one statement takes it, one frees it, each a commit that the disk has. */
async function openRow({ serverUrl, name }: ContenderSettings): Promise<{
  take(): Promise<boolean>;
  free(): Promise<unknown>;
  close(): Promise<void>;
}> {
  const client = await connected(serverUrl);
  await client.query(`CREATE SCHEMA IF NOT EXISTS raw;
    CREATE TABLE IF NOT EXISTS raw.held
      (session_id text PRIMARY KEY, holder text, token bigint NOT NULL, expires_at timestamptz NOT NULL)`);
  const take = `INSERT INTO raw.held VALUES ($1, $2, 1, now() + $3 * interval '1 ms') ON CONFLICT (session_id) DO UPDATE
    SET holder = excluded.holder, token = raw.held.token + 1, expires_at = excluded.expires_at
    WHERE raw.held.holder IS NULL OR raw.held.expires_at < clock_timestamp() RETURNING token`;
  const free = `WITH freed AS (UPDATE raw.held SET holder = NULL WHERE session_id = $1 AND holder = $2 RETURNING session_id)
    SELECT pg_notify('${channel}', session_id) FROM freed`;
  return {
    take: async () => (await client.query(take, [sessionId, name, ttlMs])).rows.length === 1,
    free: () => client.query(free, [sessionId, name]),
    close: () => client.end(),
  };
}

/** The least that is durable and fenced: a commit that notifies, and an update by whoever heard it. */
export async function openNotify(settings: ContenderSettings): Promise<Contention> {
  const row = await openRow(settings);
  const listening = await connected(settings.serverUrl);
  let hear = (): void => {};
  listening.on("notification", () => hear());
  await listening.query(`LISTEN ${channel}`);
  return {
    acquire: async () => {
      for (;;) {
        const heard = new Promise<void>((resolve) => void (hear = resolve));
        if (await row.take()) return;
        await heard;
      }
    },
    release: async () => void (await row.free()),
    close: async () => {
      await listening.end();
      await row.close();
    },
  };
}

export async function openServerPoll(settings: ContenderSettings): Promise<Contention> {
  const row = await openRow(settings);
  return {
    acquire: async () => {
      while (!(await row.take())) await pause(settings.pollMs);
    },
    release: async () => void (await row.free()),
    close: () => row.close(),
  };
}

/** Blocks in the server; nothing of it is durable, and it is held by a connection. */
export async function openAdvisoryLock({ serverUrl }: ContenderSettings): Promise<Contention> {
  const client = await connected(serverUrl);
  return {
    acquire: async () => void (await client.query("SELECT pg_advisory_lock($1)", [lockNo])),
    release: async () => void (await client.query("SELECT pg_advisory_unlock($1)", [lockNo])),
    close: () => client.end(),
  };
}

/** What one process adds for the other, and how it hears of what was added for itself. */
interface Jobs {
  add(): Promise<unknown>;
  close(): Promise<unknown>;
}

/** A job is added in one process and begun in the other: each works on the jobs of its own name. */
async function openJobs(open: (onBegun: () => void) => Promise<Jobs>): Promise<Contention> {
  let begin = (): void => {};
  const jobs = await open(() => begin());
  return {
    acquire: async (isFree) => {
      if (!isFree) await new Promise<void>((resolve) => void (begin = resolve));
    },
    release: async () => void (await jobs.add()),
    close: async () => void (await jobs.close()),
  };
}

function taskNames({ name }: ContenderSettings): { readonly own: string; readonly other: string } {
  return { own: `turn-${name}`, other: `turn-${name === "a" ? "b" : "a"}` };
}

export async function openGraphileWorker(settings: ContenderSettings): Promise<Contention> {
  const { run, Logger } = peer("graphile-worker");
  const { own, other } = taskNames(settings);
  const logger = new Logger(() => () => {});
  return await openJobs(async (onBegun) => {
    const taskList = { [own]: async () => onBegun() };
    const worker = await run({ connectionString: settings.serverUrl, taskList, logger, noHandleSignals: true });
    return { add: () => worker.addJob(other, {}), close: () => worker.stop() };
  });
}

export async function openPgBoss(settings: ContenderSettings): Promise<Contention> {
  const boss = new (peer("pg-boss"))({ connectionString: settings.serverUrl });
  const { own, other } = taskNames(settings);
  await boss.start();
  await boss.createQueue(own);
  return await openJobs(async (onBegun) => {
    await boss.work(own, async () => onBegun());
    return { add: () => boss.send(other, {}), close: () => boss.stop({ graceful: false }) };
  });
}
