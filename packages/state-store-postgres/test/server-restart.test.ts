import { startPostgres } from "@turnkeeper/postgres-server";
import type { PostgresServer } from "@turnkeeper/postgres-server";
import { CodedError } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { noServer } from "./postgres-harness.ts";
import { keysOf, openHandle, says, startTurn } from "./scene.ts";

describe.skipIf(noServer)("a server that is killed", () => {
  let server: PostgresServer | undefined;
  const own = (): PostgresServer => {
    if (!server) throw new Error("The server was not started.");
    return server;
  };
  // Commits wait for the disk here: what was acknowledged is on it. What was not is not either, before its commit says so.
  beforeAll(
    async () => void (server = await startPostgres({ fsync: true, settings: { wal_writer_delay: "10s" } })),
    60_000,
  );
  afterAll(() => server?.close());

  test("APPEND-3: and started again has every step that was acknowledged, once and in order", async () => {
    const store = await openHandle(own().url, { schema: "killed" });
    const { grant, turnId } = await startTurn(store, "a");
    const acknowledged: string[] = [];
    let isOver = false;
    const run = async (): Promise<void> => {
      for (let number = 0; !isOver || number < 20; number++) {
        const step = says(`step-${number}`);
        const answer = await store.transcript.append({ grant, turnId, entries: [step] });
        expect(answer.kind).toBe("committed");
        acknowledged.push(step.key);
      }
    };
    const running = run();
    for (let times = 0; times < 3; times++) {
      const count = acknowledged.length;
      while (acknowledged.length < count + 5) await new Promise((resolve) => void setTimeout(resolve, 5));
      await own().kill();
      await own().start();
    }
    isOver = true;
    await running;
    expect(await keysOf(store)).toEqual(["input/input-a", ...acknowledged]);
    const records = await store.sessions.records("session-1");
    expect(records && verifyRecords(records)).toEqual([]);
  }, 120_000);

  test("keeps leases and tokens: the holder renews, and the next grant's token is greater", async () => {
    const store = await openHandle(own().url, { schema: "leases" });
    const { grant } = await startTurn(store, "a");
    await own().kill();
    await own().start();
    expect(await store.leases.renew(grant, 60_000)).toEqual({ kind: "renewed" });
    expect((await store.leases.release(grant)).kind).toBe("released");
    const next = await startTurn(store, "b");
    expect(next.grant.fencingToken).toBeGreaterThan(grant.fencingToken);
  }, 60_000);

  test("LEASE-3: and started again has not forgotten a renewal, in which its holder believes", async () => {
    const store = await openHandle(own().url, { schema: "renewed" });
    const { grant } = await startTurn(store, "a");
    expect(await store.leases.renew(grant, 3_600_000)).toEqual({ kind: "renewed" });
    await own().kill();
    await own().start();
    const lease = await store.leases.read("session-1");
    expect(lease?.renewCount).toBe(1);
    expect(lease?.expiresInMs).toBeGreaterThan(1_800_000);
  }, 60_000);

  test("and stays away is told as unreachable, without its password", async () => {
    const url = new URL(own().url);
    url.password = "secret-word";
    const store = await openHandle(url.href, { schema: "away" });
    await startTurn(store, "a");
    await own().stop();
    const error = await store.leases.renew({ sessionId: "session-1", holderId: "x", fencingToken: 1 }, 1_000).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    await own().start();
    if (!CodedError.is(error)) throw new Error("It was renewed.");
    expect(error.code).toBe("STORE_UNAVAILABLE");
    expect(JSON.stringify(error) + error.message + String(error.cause)).not.toContain("secret-word");
    expect(store.server.url).not.toContain("secret-word");
  }, 60_000);
});
