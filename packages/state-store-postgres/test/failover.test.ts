import { startPostgres } from "@turnkeeper/postgres-server";
import type { PostgresServer } from "@turnkeeper/postgres-server";
import { verifyRecords } from "@turnkeeper/state-store";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { startCuttingProxy } from "./cutting-proxy.ts";
import { noServer } from "./postgres-harness.ts";
import { keysOf, openHandle, says, startTurn, urlThrough } from "./scene.ts";

async function adminOf(server: PostgresServer): Promise<pg.Client> {
  const admin = new pg.Client({ connectionString: server.url });
  admin.on("error", () => {});
  await admin.connect();
  onTestFinished(() => void admin.end().catch(() => {}));
  return admin;
}

async function askUntilTrue(admin: pg.Client, text: string): Promise<void> {
  for (;;) {
    const { rows } = await admin.query<{ is: boolean | null }>(text);
    if (rows[0]?.is) return;
  }
}

interface Pair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** Of the standby. */
  readonly admin: pg.Client;
  /** Everybody of the test comes through here. */
  readonly proxy: Awaited<ReturnType<typeof startCuttingProxy>>;
  readonly url: string;
}

/** A primary with a hot standby, which follows it asynchronously, and an address that leads to the one that writes. */
async function startPair(): Promise<Pair> {
  const primary = await startPostgres();
  onTestFinished(() => primary.close());
  const standby = await primary.startStandby();
  onTestFinished(() => standby.close());
  const proxy = await startCuttingProxy(primary.port);
  onTestFinished(() => proxy.close());
  return { primary, standby, admin: await adminOf(standby), proxy, url: urlThrough(proxy.port, primary.url) };
}

describe.skipIf(noServer)("a failover to a standby", () => {
  test("APPEND-3: that is behind, and has not been told yet, is waited for: the turn goes on where all of it comes", async () => {
    const { primary, standby, admin, proxy, url } = await startPair();
    const store = await openHandle(url, { schema: "behind" });
    await askUntilTrue(admin, "SELECT to_regclass('behind.store') IS NOT NULL AS is");
    // From here on the standby has what comes, and does not know it yet.
    await admin.query("SELECT pg_wal_replay_pause()");
    await askUntilTrue(admin, "SELECT pg_get_wal_replay_pause_state() = 'paused' AS is");
    const { grant, turnId } = await startTurn(store, "a");
    const onPrimary = await adminOf(primary);
    await askUntilTrue(onPrimary, "SELECT flush_lsn >= pg_current_wal_flush_lsn() AS is FROM pg_stat_replication");
    await primary.kill();
    proxy.leadTo(standby.port);

    // Its write is refused by the standby, and so is the look after it that would tell whether the grant still stands.
    const refused = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    const before = (await admin.query<{ xact_rollback: string }>(refused)).rows[0]?.xact_rollback ?? "";
    const appended = store.transcript.append({ grant, turnId, entries: [says("step-1")] });
    const twice = askUntilTrue(admin, `SELECT (${refused}) >= ${before} + 2 AS is`);
    expect(await Promise.race([appended, twice])).toBe(undefined);
    await admin.query("SELECT pg_wal_replay_resume()");
    await admin.query("SELECT pg_promote()");
    expect((await appended).kind).toBe("committed");
    expect(await store.leases.renew(grant, 60_000)).toEqual({ kind: "renewed" });
    expect(await keysOf(store)).toEqual(["input/input-a", "step-1"]);
  }, 120_000);

  test("APPEND-1: that never got the grant: its holder writes nothing more, though another is given its token", async () => {
    const { primary, standby, admin, proxy, url } = await startPair();
    const store = await openHandle(url, { schema: "lost" });
    await askUntilTrue(admin, "SELECT to_regclass('lost.store') IS NOT NULL AS is");
    // What is on the way to the standby from here on never comes.
    await (await adminOf(primary)).query("ALTER SYSTEM SET max_wal_senders = 0");
    await primary.stop();
    await primary.start();
    const lost = await startTurn(store, "a");
    await primary.kill();
    await admin.query("SELECT pg_promote()");
    proxy.leadTo(standby.port);
    const next = await startTurn(store, "b");
    expect(next.grant.fencingToken).toBe(lost.grant.fencingToken);
    const late = await store.transcript.append({ ...lost, entries: [says("late")] });
    expect(late.kind).toBe("stale-token");
    expect((await store.leases.renew(lost.grant, 60_000)).kind).toBe("lost");
    expect((await store.transcript.append({ ...next, entries: [says("step-b")] })).kind).toBe("committed");
    expect(await keysOf(store)).toEqual(["input/input-b", "step-b"]);
    const records = await store.sessions.records("session-1");
    expect(records && verifyRecords(records)).toEqual([]);
  }, 120_000);
});
