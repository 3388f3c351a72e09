import { systemHost } from "@turnkeeper/kernel";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { fillStore, scansOf } from "./filled-store.ts";
import type { TableScans } from "./filled-store.ts";
import { freshSchema, noServer, serverUrl } from "./postgres-harness.ts";
import { offer, openHandle, says, startTurn } from "./scene.ts";

/** Enough that no plan reads a whole table for want of anything better. */
const sessionCount = 20_000;

/** Everything that is asked while turns run, and what a gateway asks now and then. */
async function runEverything(schema: string): Promise<void> {
  const url = new URL(serverUrl);
  url.searchParams.set("application_name", schema);
  const store = await openPostgresStore(url.href, { host: systemHost }, { schema });
  const { grant, turnId } = await startTurn(store, "a");
  await store.leases.renew(grant, 60_000);
  await store.leases.read("session-1");
  await store.transcript.append({ grant, turnId, entries: [says("one"), says("two")] });
  await offer(store, "steer", "steer");
  await store.inbox.takeSteers(grant, turnId);
  await offer(store, "waits");
  await store.inbox.read("session-1", "waits");
  await store.inbox.pending("session-1");
  await store.inbox.waitingSessions(100);
  await store.turns.running();
  await store.turns.running("session-1");
  await store.turns.read("session-1", turnId);
  await store.turns.requestStop("session-1", { hard: false, reason: "user-stop", by: "test" });
  await store.turns.stopRequest("session-1", turnId);
  await store.turns.end({ grant, turnId, outcome: "interrupted", release: true });
  await store.inbox.withdraw("session-1", "waits", "cancelled");
  await store.transcript.load("session-1");
  await store.transcript.load("filled-7");
  await store.sessions.read("filled-7");
  await store.sessions.records("filled-7");
  const page = await store.sessions.list({ limit: 20 });
  await store.sessions.list({ limit: 20, ...(page.nextCursor ? { cursor: page.nextCursor } : {}) });
  // With its connections end the processes that count: only then is what they counted told.
  await store.close();
}

describe.skipIf(noServer)("with many sessions", () => {
  test("no call of a turn, and no look at the store, reads a table from its beginning to its end", async () => {
    const schema = freshSchema();
    await (await openHandle(serverUrl, { schema })).close();
    const admin = new pg.Client({ connectionString: serverUrl });
    await admin.connect();
    onTestFinished(() => admin.end());
    await fillStore(admin, schema, sessionCount);
    const large = ({ table }: TableScans): boolean => table !== "store" && table !== "call";
    const before = (await scansOf(admin, schema)).filter(large);
    await runEverything(schema);
    // Its connections tell what they counted as they end.
    await admin.query(
      `DO $$ BEGIN
         WHILE EXISTS (SELECT FROM pg_stat_activity WHERE application_name = '${schema}') LOOP
           PERFORM pg_stat_clear_snapshot(), pg_sleep(0.01);
         END LOOP;
       END $$`,
    );
    const after = (await scansOf(admin, schema)).filter(large);
    expect(after.map(({ table }) => table)).toEqual(["entry", "input", "lease", "session", "turn"]);
    const whole = (scans: readonly TableScans[]): readonly number[] => scans.map(({ wholeCount }) => wholeCount);
    expect(whole(after)).toEqual(whole(before));
    const read = after.filter(({ table, indexedCount }) =>
      before.some((one) => one.table === table && one.indexedCount < indexedCount),
    );
    expect(read).toHaveLength(after.length);
  }, 120_000);
});
