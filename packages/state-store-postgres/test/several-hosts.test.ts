import { systemHost } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import { describe, expect, test } from "vitest";
import { freshSchema, noServer, serverUrl } from "./postgres-harness.ts";
import { keysOf, offer, openHandle, says, startTurn } from "./scene.ts";
import { outputOf, startProcess } from "./store-process.ts";

/** A machine whose clocks are off by so much, both of them. */
function hostOff(ms: number): Host {
  const { clock } = systemHost;
  return {
    ...systemHost,
    clock: {
      wallMs: () => clock.wallMs() + ms,
      monotonicMs: () => clock.monotonicMs(),
      bootMs: () => clock.bootMs() + ms,
      bootId: `boot of the machine that is off by ${ms}`,
    },
  };
}

describe.skipIf(noServer)("several hosts on one server", () => {
  test("clocks that are hours off change nothing: leases last as long, and times are the server's", async () => {
    const schema = freshSchema();
    const [early, late] = await Promise.all(
      [-5, 5].map((hours) => openHandle(serverUrl, { schema }, hostOff(hours * 3_600_000))),
    );
    if (!early || !late) throw new Error("A store is missing.");
    const { grant } = await startTurn(early, "a");
    const lease = await late.leases.read("session-1");
    expect(lease?.standing).toBe("live");
    expect(lease?.expiresInMs).toBeGreaterThan(30_000);
    expect(lease?.expiresInMs).toBeLessThanOrEqual(60_000);
    expect(await offer(late, "input-b")).toMatchObject({
      kind: "accepted",
      lease: { fencingToken: grant.fencingToken },
    });
    const [input] = await early.inbox.pending("session-1");
    expect(Math.abs((input?.offeredAtMs ?? 0) - systemHost.clock.wallMs())).toBeLessThan(600_000);
    expect(await late.turns.requestStop("session-1", { hard: false, reason: "user-stop", by: "test" })).toMatchObject({
      kind: "requested",
    });
    expect(await early.turns.stopRequest("session-1", "turn-a")).toMatchObject({ reason: "user-stop" });
  });

  test("APPEND-1: a holder that knows its session from its own last write is fenced off all the same", async () => {
    const schema = freshSchema();
    const [a, b] = await Promise.all([openHandle(serverUrl, { schema }), openHandle(serverUrl, { schema })]);
    const first = await startTurn(a, "a");
    for (const key of ["one", "two"]) await a.transcript.append({ ...first, entries: [says(key)] });
    const settled = await b.turns.settleForeign(first.grant);
    expect(settled.kind).toBe("settled");
    expect(await a.transcript.append({ ...first, entries: [says("late")] })).toEqual({ kind: "stale-token" });
    expect(await a.leases.renew(first.grant, 60_000)).toEqual({ kind: "lost" });
    expect(await keysOf(b)).toEqual(["input/input-a", "one", "two"]);
    // What was stored before is known for it, under whatever token.
    expect((await a.transcript.append({ ...first, entries: [says("two")] })).kind).toBe("committed");
  });

  test("LEASE-1: a lease that is renewed while another judges it expired is not taken", async () => {
    const schema = freshSchema();
    const [a, b] = await Promise.all([openHandle(serverUrl, { schema }), openHandle(serverUrl, { schema })]);
    const { grant } = await startTurn(a, "a", 1);
    const contenders = Array.from({ length: 30 }, async (_, index) => {
      if (index % 2 === 0) return (await a.leases.renew(grant, 60_000)).kind;
      const holder = { instanceId: "i", host: "h", bootId: "b", pid: 1, holderId: `contender-${index}` };
      return (await b.leases.acquire({ sessionId: "session-1", holder, ttlMs: 60_000 })).kind;
    });
    const answers = await Promise.all(contenders);
    const lease = await a.leases.read("session-1");
    const isTaken = answers.includes("granted");
    // Either every renewal before the grant and none after it, or no grant at all.
    expect(lease?.holder.holderId === "holder-a").toBe(!isTaken);
    expect(answers.filter((answer) => answer === "granted").length).toBeLessThanOrEqual(1);
    expect((await a.leases.renew(grant, 60_000)).kind).toBe(isTaken ? "lost" : "renewed");
  });

  test("processes that race for one session leave whole turns, one after the other, under tokens that only grow", async () => {
    const schema = freshSchema();
    const store = await openHandle(serverUrl, { schema });
    const names = ["process-0", "process-1", "process-2"];
    await Promise.all(names.map((name) => outputOf(startProcess("turn-runner", [serverUrl, schema, name, "8"]))));
    const records = await store.sessions.records("s0");
    if (!records) throw new Error("The session is gone.");
    expect(verifyRecords(records)).toEqual([]);
    const answered = records.turns.filter((turn) => turn.state === "ended" && turn.outcome === "answered");
    for (const name of names) expect(answered.filter(({ turnId }) => turnId.startsWith(name))).toHaveLength(8);
    // A turn that was interleaved with another would come up twice here.
    const inOrder: string[] = [];
    for (const { turnId } of records.entries) if (inOrder.at(-1) !== turnId) inOrder.push(turnId);
    expect(inOrder).toEqual(records.turns.map(({ turnId }) => turnId).filter((turnId) => inOrder.includes(turnId)));
    for (const { turnId } of answered)
      expect(records.entries.filter((entry) => entry.turnId === turnId)).toHaveLength(6);
  }, 120_000);
});
