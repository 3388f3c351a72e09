/** What becomes of a turn whose holder did not end it, and of the calls that any end leaves open. */
import assert from "node:assert/strict";
import { unknownOutcome } from "../../entry.ts";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertGrew,
  ask,
  assertVerified,
  beginOf,
  calls,
  changesNothing,
  finishes,
  holderOf,
  inputOf,
  offered,
  recordsOf,
  refuses,
  results,
  runningOf,
  says,
  session,
  startTurn,
  take,
  ttlMs,
} from "../scene.ts";

/** The results that the transcript has for a call, by their status. */
async function statusesOf(store: StateStore, callId: string): Promise<readonly string[]> {
  const { entries } = await store.transcript.load(session, { all: true });
  return entries.flatMap(({ body }) => (body.role === "tool" && body.callId === callId ? [body.status] : []));
}

/** `a` dies in the middle of a turn: one call answered, two open, an input taken and a steer taken. */
async function diesMidTurn(store: StateStore): Promise<Awaited<ReturnType<typeof startTurn>>> {
  const turn = await startTurn(store, "a", { ttlMs: 5_000 });
  const { grant, turnId } = turn;
  await offered(store, "b", "steer-1", { onBusy: "steer" });
  await store.inbox.takeSteers(grant, turnId);
  const step = [calls("calls", "call-1", "call-2", "call-3"), results("result-2", "call-2")];
  await store.transcript.append({ grant, turnId, entries: step });
  return turn;
}

async function isSettled(store: StateStore, turnId: string): Promise<void> {
  const turn = await store.turns.read(session, turnId);
  assert.equal(turn?.state, "ended");
  assert.deepEqual([turn.outcome, turn.reason], ["interrupted", "crashed"]);
  for (const inputId of ["input-a", "steer-1"]) {
    const input = await inputOf(store, inputId);
    assert.deepEqual(input.state === "settled" && [input.end, input.turnId], ["interrupted", turnId]);
  }
  assert.deepEqual(await statusesOf(store, "call-1"), ["unknown"]);
  assert.deepEqual(await statusesOf(store, "call-2"), ["ok"]);
  assert.deepEqual(await statusesOf(store, "call-3"), ["unknown"]);
  await assertVerified(store);
}

/** The turns whose processes a grant is told to end. */
function leftBy({ granted }: Pick<Awaited<ReturnType<typeof take>>, "granted">): readonly string[] {
  return (granted.predecessors ?? []).map(({ turnId }) => turnId);
}

export const settlementCases: readonly ConformanceCase[] = [
  {
    id: "PAIR-1",
    title: "a turn that ends with open calls closes each of them once, with `outcome unknown`",
    async run({ open, reopen }) {
      for (const outcome of ["answered", "interrupted", "failed"] as const) {
        const store = await open();
        const { grant, turnId } = await startTurn(store, "a");
        await store.transcript.append({ grant, turnId, entries: [calls("calls", "call-1", "call-2", "call-3")] });
        const entries = [results("result-2", "call-2"), calls("more", "call-4")];
        await store.turns.end({ grant, turnId, outcome, entries, release: true });
        const again = await reopen();
        assert.deepEqual(await statusesOf(again, "call-1"), ["unknown"]);
        assert.deepEqual(await statusesOf(again, "call-2"), ["ok"]);
        assert.deepEqual(await statusesOf(again, "call-3"), ["unknown"]);
        assert.deepEqual(await statusesOf(again, "call-4"), ["unknown"]);
        const closed = (await recordsOf(again)).entries.find(
          ({ body }) => body.role === "tool" && body.callId === "call-1",
        );
        assert.deepEqual(closed?.body, unknownOutcome({ callId: "call-1", name: "shell" }));
        assert.equal(closed?.turnId, turnId);
        await assertVerified(again);
      }
    },
  },
  {
    id: "PAIR-1b",
    title:
      "a grant over a dead predecessor settles its turn in the same step: calls unknown, inputs interrupted, turn crashed",
    async run({ open, reopen, host }) {
      const dead = await diesMidTurn(await open());
      await host.advance(5_000);
      const store = await reopen();
      assert.equal((await store.turns.read(session, dead.turnId))?.state, "running");
      await offered(store, "b", "input-b");
      const { granted } = await take(store, "b", { begin: beginOf("b") });
      assert.deepEqual(granted.predecessors, [{ turnId: dead.turnId, holder: holderOf("a") }]);
      assert.equal(granted.input?.inputId, "input-b");
      const again = await reopen();
      await isSettled(again, dead.turnId);
      assert.equal((await runningOf(again))?.turnId, "turn-b");
      // A message that reached a turn is never silently run again.
      assert.deepEqual(await again.inbox.pending(session), []);
    },
  },
  {
    id: "PAIR-1c",
    title: "what the predecessor left open is settled before the new turn's first entry, and the revision tells it",
    async run({ open }) {
      const store = await open();
      const dead = await diesMidTurn(store);
      const { revision } = await store.transcript.load(session);
      await offered(store, "b", "input-b");
      const { granted } = await take(store, "b", { begin: beginOf("b"), reclaim: dead.grant });
      assertGrew("revision", revision, granted.revision);
      const { entries } = await store.transcript.load(session);
      assert.deepEqual(
        entries.map((entry) => entry.turnId),
        [...Array.from({ length: entries.length - 1 }, () => dead.turnId), "turn-b"],
      );
    },
  },
  {
    id: "PAIR-1d",
    title: "a call is stored once in its turn, and each result answers an open call: anything else is refused whole",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const append = (...entries: ReturnType<typeof says>[]) => store.transcript.append({ grant, turnId, entries });
      await append(calls("call", "call-1"), results("result", "call-1"));
      await refuses(store, "STORE_CONTRACT", () => append(says("said", "x"), results("second", "call-1")));
      await refuses(store, "STORE_CONTRACT", () => append(says("said", "x"), results("stray", "call-9")));
      await refuses(store, "STORE_CONTRACT", () => append(says("said", "x"), calls("again", "call-1")));
      await refuses(store, "STORE_CONTRACT", () => append(results("early", "call-2"), calls("late", "call-2")));
      await refuses(store, "STORE_CONTRACT", () =>
        store.turns.end({ grant, turnId, outcome: "answered", entries: [results("second", "call-1")], release: true }),
      );
      await append(calls("next", "call-2"));
    },
  },
  {
    id: "PAIR-1e",
    title: "a call id may come again in the next turn: providers repeat theirs",
    async run({ open }) {
      const store = await open();
      for (const name of ["a", "a#2"]) {
        await offered(store, "a", `input-${name}`);
        const { grant } = await take(store, name, { begin: beginOf(name) });
        const { turnId } = beginOf(name);
        await store.transcript.append({ grant, turnId, entries: [calls(`call-${name}`, "call-1")] });
        await store.turns.end({ grant, turnId, outcome: "answered", release: true });
      }
      assert.deepEqual(await statusesOf(store, "call-1"), ["unknown", "unknown"]);
      await assertVerified(store);
    },
  },
  {
    id: "TURN-SETTLE",
    title: "a settlement ends the turn of the grant it names, live or lapsed, raises the token and frees the lease",
    async run({ open, reopen, host }) {
      for (const isLapsed of [false, true]) {
        const dead = await diesMidTurn(await open());
        if (isLapsed) await host.advance(5_000);
        const store = await reopen();
        await offered(store, "b", "input-b");
        const before = await recordsOf(store);
        const settled = await store.turns.settleForeign(dead.grant);
        assert.equal(settled.kind, "settled");
        assert.deepEqual(settled.turn?.openCallIds, ["call-1", "call-3"]);
        assert.deepEqual(settled.turn?.inputIds.toSorted(), ["input-a", "steer-1"]);
        assert.deepEqual([settled.pendingCount, settled.head?.inputId], [1, "input-b"]);
        const again = await reopen();
        await isSettled(again, dead.turnId);
        assert.equal(await again.leases.read(session), undefined);
        assert.equal(await runningOf(again), undefined);
        const raised = (await recordsOf(again)).fencingToken;
        assert.ok(raised > before.fencingToken, "the token was not raised");
        const next = await ask(again, "b");
        assert.equal(next.kind, "granted");
        assert.ok(next.fencingToken >= raised, `granted ${next.fencingToken} after the token was raised to ${raised}`);
        assert.deepEqual(next.predecessors, [{ turnId: dead.turnId, holder: holderOf("a") }]);
      }
    },
  },
  {
    id: "TURN-SETTLE-b",
    title: "a settlement is conditional on the grant it judged: another, a released or a settled one changes nothing",
    async run({ open }) {
      const store = await open();
      const a = await startTurn(store, "a");
      const wrong = [
        { ...a.grant, fencingToken: a.grant.fencingToken + 1 },
        { ...a.grant, holderId: "holder-b" },
        { ...a.grant, sessionId: "session-2" },
      ];
      for (const grant of wrong) {
        const answer = await changesNothing(store, () => store.turns.settleForeign(grant));
        assert.deepEqual(answer, { kind: "changed" });
      }
      const b = await startTurn(store, "b", { reclaim: a.grant });
      assert.deepEqual(await changesNothing(store, () => store.turns.settleForeign(a.grant)), { kind: "changed" });
      assert.equal((await store.turns.settleForeign(b.grant)).kind, "settled");
      assert.deepEqual(await changesNothing(store, () => store.turns.settleForeign(b.grant)), { kind: "changed" });
      const c = await take(store, "c");
      await store.leases.release(c.grant);
      assert.deepEqual(await changesNothing(store, () => store.turns.settleForeign(c.grant)), { kind: "changed" });
    },
  },
  {
    id: "TURN-SETTLE-c",
    title: "of a settlement and a holder's last write that race one comes first, and the other is told",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const [settled, end] = await Promise.all([
        store.turns.settleForeign(grant),
        store.turns.end({ grant, turnId, outcome: "answered", release: true }),
      ]);
      const turn = await store.turns.read(session, turnId);
      const winner = settled.kind === "settled" ? "interrupted" : "answered";
      assert.equal(turn?.state === "ended" && turn.outcome, winner);
      assert.equal(end.kind, winner === "answered" ? "ended" : "stale-token");
      await assertVerified(store);
    },
  },
  {
    id: "TURN-SETTLE-d",
    title: "a settled holder that comes back writes nothing, renews nothing, frees nothing and takes no steer",
    async run({ open, reopen }) {
      const { grant, turnId } = await diesMidTurn(await open());
      await (await reopen()).turns.settleForeign(grant);
      const store = await reopen();
      await offered(store, "b", "steer-2");
      const late: (() => Promise<{ readonly kind: string }>)[] = [
        () => store.transcript.append({ grant, turnId, entries: [results("late", "call-1")] }),
        () => store.turns.end({ grant, turnId, outcome: "interrupted", reason: "lease-lost", release: true }),
        () => store.turns.begin(grant, turnId, ["steer-2"]),
        () => store.inbox.takeSteers(grant, turnId),
      ];
      for (const write of late) assert.deepEqual(await changesNothing(store, write), { kind: "stale-token" });
      assert.equal((await changesNothing(store, () => store.leases.renew(grant, ttlMs))).kind, "lost");
      assert.equal((await changesNothing(store, () => store.leases.release(grant))).kind, "stale");
    },
  },
  {
    id: "TURN-SETTLE-e",
    title: "a settlement of a grant without a turn frees the lease and raises the token",
    async run({ open }) {
      const store = await open();
      const { grant } = await take(store, "a");
      const settled = await store.turns.settleForeign(grant);
      assert.deepEqual(settled, { kind: "settled", pendingCount: 0 });
      assert.equal(await store.leases.read(session), undefined);
      const next = await take(store, "b");
      assertGrew("fencing token", grant.fencingToken, next.granted.fencingToken);
      assert.equal(next.granted.predecessors, undefined);
    },
  },
  {
    id: "TURN-SETTLE-f",
    title: "every grant is told of the turns that did not end themselves, whoever settled them, until one has",
    async run({ open, reopen, host }) {
      const a = await startTurn(await open(), "a");
      await (await reopen()).turns.settleForeign(a.grant);
      const b = await startTurn(await reopen(), "b", { ttlMs: 5_000 });
      assert.deepEqual(leftBy(b), ["turn-a"]);
      // It dies too, perhaps before it had ended what the first left.
      await host.advance(5_000);
      const store = await reopen();
      const c = await startTurn(store, "c");
      assert.deepEqual(leftBy(c), ["turn-a", "turn-b"]);
      // Its answer was lost: it asks again, and must be told again.
      assert.deepEqual(leftBy(await take(store, "c", { begin: beginOf("c") })), ["turn-a", "turn-b"]);
      // A release leaves the turn to be settled as after a crash.
      await store.leases.release(c.grant);
      const d = await startTurn(store, "d");
      assert.deepEqual(leftBy(d), ["turn-a", "turn-b", "turn-c"]);
      await finishes(store, "d", d.grant);
      const e = await startTurn(store, "e");
      assert.deepEqual(leftBy(e), []);
      await store.turns.settleForeign(e.grant);
      // One that ends by way of the spool has ended itself.
      const { grant, turnId, ...f } = await startTurn(store, "f");
      assert.deepEqual(leftBy(f), ["turn-e"]);
      await store.spool.keep({ grant, turnId, entries: [], end: { outcome: "failed", reason: "STORE_IO" } });
      assert.deepEqual(leftBy(await startTurn(store, "g", { reclaim: grant })), []);
    },
  },
  {
    id: "TURN-SETTLE-g",
    title: "a grant without a turn, a session that is deleted and one that is imported change nothing of who is told",
    async run({ open, host }) {
      const store = await open();
      await startTurn(store, "a", { ttlMs: 5_000 });
      const records = await recordsOf(store);
      await host.advance(5_000);
      assert.equal((await store.sessions.delete(session)).kind, "deleted");
      const idle = await take(store, "b");
      assert.deepEqual(leftBy(idle), ["turn-a"]);
      await store.leases.release(idle.grant);
      assert.equal((await store.sessions.importSession(records)).kind, "imported");
      const next = await startTurn(store, "c");
      assert.deepEqual(leftBy(next), ["turn-a"]);
      assert.deepEqual(next.granted.predecessors?.[0]?.holder, holderOf("a"));
    },
  },
  {
    id: "TURN-SETTLE-h",
    title: "of a long row of turns that did not end themselves the newest 16 are told: what is remembered is bounded",
    async run({ open }) {
      const store = await open();
      const names = Array.from({ length: 20 }, (_, index) => `n${index}`);
      for (const name of names) await store.turns.settleForeign((await startTurn(store, name)).grant);
      const expected = names.slice(-16).map((name) => `turn-${name}`);
      assert.deepEqual(leftBy(await startTurn(store, "last")), expected);
    },
  },
  {
    id: "TURN-SETTLE-i",
    title:
      "a turn that could not end its processes joins those whose are left, until one has ended all; by the spool too",
    async run({ open, reopen }) {
      const store = await open();
      await store.turns.settleForeign((await startTurn(store, "a")).grant);
      const b = await startTurn(store, "b");
      const end = { outcome: "failed", reason: "PROCESSES_LEFT", leavesProcesses: true } as const;
      await store.turns.end({ grant: b.grant, turnId: b.turnId, ...end, release: true });
      // A repetition of the end notes nothing twice.
      await store.turns.end({ grant: b.grant, turnId: b.turnId, ...end, release: true });
      const c = await startTurn(await reopen(), "c");
      assert.deepEqual(leftBy(c), ["turn-a", "turn-b"]);
      assert.deepEqual(c.granted.predecessors?.[1]?.holder, holderOf("b"));
      const again = await reopen();
      await again.spool.keep({ grant: c.grant, turnId: c.turnId, entries: [], end });
      const d = await startTurn(again, "d", { reclaim: c.grant });
      assert.deepEqual(leftBy(d), ["turn-a", "turn-b", "turn-c"]);
      await again.turns.end({ grant: d.grant, turnId: d.turnId, outcome: "answered", release: true });
      assert.deepEqual(leftBy(await startTurn(again, "e")), []);
    },
  },
  {
    id: "PAIR-1f",
    title: "a key of the store's own that somebody used already keeps no turn open and no input waiting",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await offered(store, "b", "steer-1", { onBusy: "steer" });
      const taken = ["input/steer-1", `${turnId}/call-1/unknown`];
      const entries = [...taken.map((key) => says(key, "mine")), calls("call", "call-1")];
      await store.transcript.append({ grant, turnId, entries });
      assert.equal((await store.inbox.takeSteers(grant, turnId)).kind, "taken");
      await store.turns.end({ grant, turnId, outcome: "answered", release: true });
      const stored = (await store.transcript.load(session)).entries;
      assert.deepEqual(
        stored.map(({ body }) => body.role),
        ["user", "assistant", "assistant", "assistant", "user", "tool"],
      );
      await assertVerified(store);
    },
  },
];
