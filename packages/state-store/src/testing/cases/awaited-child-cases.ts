/** Suspended turns whose calls wait for the ends of their subagents (rules 7.19 and 7.20). */
import assert from "node:assert/strict";
import { unansweredCalls } from "../../approval.ts";
import type { ChildWait, SuspendResult } from "../../approval.ts";
import type { Grant } from "../../identity.ts";
import type { StateStore } from "../../state-store.ts";
import type { SuspendedTurn } from "../../turn.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertVerified,
  beginOf,
  calls,
  finishes,
  grantOf,
  holderOf,
  offered,
  recordsOf,
  refuses,
  results,
  says,
  session,
  startTurn,
  take,
  ttlMs,
} from "../scene.ts";

const child = "session-2";
const parentCall = { sessionId: session, turnId: "turn-a", callId: "c" } as const;
const waits: readonly ChildWait[] = [{ callId: "c", childSessionId: child }];

interface Running {
  readonly grant: Grant;
  readonly turnId: string;
}

/** `a` runs a turn with the calls `c` and `d` open, and the child of `c` runs too. */
async function delegating(store: StateStore): Promise<{ readonly parent: Running; readonly own: Running }> {
  const { grant, turnId } = await startTurn(store, "a");
  await store.transcript.append({ grant, turnId, entries: [calls("call", "c", "d")] });
  await offered(store, "a", "task", { sessionId: child, parent: parentCall });
  const begun = await take(store, "a", { sessionId: child, begin: { ...beginOf("a"), turnId: "turn-c" } });
  const own = { grant: begun.grant, turnId: "turn-c" };
  await store.transcript.append({ ...own, entries: [calls("child-call", "rm")] });
  return { parent: { grant, turnId }, own };
}

function suspend(store: StateStore, parent: Running, callIds: readonly string[] = []): Promise<SuspendResult> {
  return store.turns.suspend({ ...parent, callIds, waits });
}

async function childEnds(store: StateStore, own: Running): Promise<void> {
  const entries = [results("rm-done", "rm"), says("child-said", "found it")];
  assert.equal((await store.turns.end({ ...own, entries, outcome: "answered", release: true })).kind, "ended");
}

async function suspendedOf(store: StateStore): Promise<SuspendedTurn> {
  const [view] = await store.turns.running(session);
  assert.ok(view?.turn.state === "suspended", `the parent's turn is ${view?.turn.state ?? "over"}`);
  return view.turn;
}

const openOf = async (store: StateStore): Promise<readonly string[]> =>
  unansweredCalls(await suspendedOf(store)).map(({ callId }) => callId);

const noticesOf = async (store: StateStore): Promise<readonly string[]> =>
  (await store.inbox.pending(session)).flatMap((input) => (input.child ? [input.child.outcome] : []));

const requestOf = (name: string): Parameters<StateStore["leases"]["acquire"]>[0] => ({
  sessionId: session,
  holder: holderOf(name),
  ttlMs,
});

const resumes = { begin: { ...beginOf("b"), resumes: true } } as const;

async function resultOf(store: StateStore, callId: string): Promise<string> {
  const { entries } = await recordsOf(store);
  const found = entries.flatMap(({ body }) => (body.role === "tool" && body.callId === callId ? [body] : []));
  return found.map(({ status, output }) => `${status}: ${JSON.stringify(output)}`).join(" | ");
}

export const awaitedChildCases: readonly ConformanceCase[] = [
  {
    id: "CHILD-AWAITED",
    title:
      "the child's end lets the call go on, in its own transaction and beside its one notice; nobody decides on it",
    async run({ open, reopen }) {
      const first = await open();
      const { parent, own } = await delegating(first);
      const suspended = await suspend(first, parent, ["d"]);
      assert.equal(suspended.kind, "suspended");
      assert.deepEqual(await openOf(first), ["d", "c"]);
      assert.deepEqual((await suspendedOf(first)).approvals[1]?.child?.sessionId, child);
      const decision = { sessionId: session, callId: "c", decision: "allow", by: "somebody" } as const;
      assert.deepEqual(await first.turns.answer(decision), { kind: "nothing-asked" });
      assert.equal((await first.turns.answer({ ...decision, callId: "d" })).kind, "recorded");
      assert.equal((await first.leases.acquire({ ...requestOf("b"), ...resumes })).kind, "suspended");

      const store = await reopen();
      await childEnds(store, own);
      assert.deepEqual([await openOf(store), await noticesOf(store)], [[], ["answered"]]);
      const after = await reopen();
      const waited = (await suspendedOf(after)).approvals[1];
      assert.ok(waited?.child?.endedAtMs !== undefined && waited.answer === undefined, "the call waits on");
      const granted = await after.leases.acquire({ ...requestOf("b"), ...resumes });
      assert.ok(granted.kind === "granted" && granted.resumed?.turnId === parent.turnId, "the turn did not go on");
      assert.deepEqual(granted.resumed.approvals, (await after.turns.read(session, parent.turnId))?.approvals);
      const [notice] = await after.inbox.pending(session);
      await after.transcript.append({
        ...parent,
        grant: grantOf("b", granted.fencingToken),
        entries: [results("c-result", "c"), results("d-result", "d")],
        settledInputs: [{ inputId: notice?.inputId ?? "", end: "answered" }],
      });
      await finishes(after, "a", grantOf("b", granted.fencingToken));
      assert.deepEqual(await noticesOf(after), []);
      await assertVerified(after);
      await assertVerified(after, child);
    },
  },
  {
    id: "CHILD-AWAITED-b",
    title: "a child that ended before the suspension, or is gone, is waited for no more",
    async run({ open }) {
      const ends = [
        (store: StateStore, own: Running) => childEnds(store, own),
        async (store: StateStore, own: Running) => {
          await childEnds(store, own);
          assert.deepEqual(await store.sessions.delete(child), { kind: "deleted" });
        },
      ];
      for (const end of ends) {
        const store = await open();
        const { parent, own } = await delegating(store);
        await end(store, own);
        assert.equal((await suspend(store, parent)).kind, "suspended");
        assert.deepEqual([await openOf(store), await noticesOf(store)], [[], ["answered"]]);
        const granted = await store.leases.acquire({ ...requestOf("b"), ...resumes });
        assert.ok(granted.kind === "granted" && granted.resumed !== undefined, "the turn did not go on");
      }
    },
  },
  {
    id: "CHILD-AWAITED-c",
    title: "however the child's turn ends, the call waits no more: crashed, stopped while it was suspended, deleted",
    async run({ open }) {
      const ways: readonly ((store: StateStore, own: Running) => Promise<unknown>)[] = [
        (store, { grant }) => store.turns.settleForeign(grant),
        async (store, own) => {
          await store.turns.suspend({ ...own, callIds: ["rm"] });
          await store.turns.requestStop(child, { hard: true, reason: "user-stop", by: "somebody" });
        },
        async (store, own) => {
          await store.turns.suspend({ ...own, callIds: ["rm"] });
          await store.turns.requestStop(child, { hard: false, reason: "user-stop", by: "somebody" });
          assert.deepEqual(await store.sessions.delete(child), { kind: "deleted" });
        },
      ];
      for (const way of ways) {
        const store = await open();
        const { parent, own } = await delegating(store);
        await suspend(store, parent);
        await way(store, own);
        assert.deepEqual([await openOf(store), await noticesOf(store)], [[], ["interrupted"]]);
      }
    },
  },
  {
    id: "CHILD-AWAITED-d",
    title: "a stop ends the parent's turn alone: the call says that its child is left, whose end is told all the same",
    async run({ open }) {
      const store = await open();
      const { parent, own } = await delegating(store);
      await suspend(store, parent, ["d"]);
      const stopped = await store.turns.requestStop(session, { hard: true, reason: "user-stop", by: "somebody" });
      assert.equal(stopped.kind, "stopped");
      assert.match(await resultOf(store, "c"), /^interrupted: ".*session-2.*"$/);
      assert.match(await resultOf(store, "d"), /^interrupted: "Not run/);
      assert.equal((await store.turns.running(child))[0]?.turn.state, "running");
      await childEnds(store, own);
      assert.deepEqual(await noticesOf(store), ["answered"]);
      await assertVerified(store);
    },
  },
  {
    id: "CHILD-AWAITED-e",
    title: "a call waits for a child of its own, and may wait for the next one after that",
    async run({ open }) {
      const store = await open();
      const { parent, own } = await delegating(store);
      await offered(store, "a", "other", { sessionId: "session-3" });
      const wrong: readonly (readonly ChildWait[])[] = [
        [{ callId: "d", childSessionId: child }],
        [{ callId: "c", childSessionId: "session-3" }],
        [{ callId: "none", childSessionId: child }],
        [...waits, ...waits],
      ];
      for (const one of wrong)
        await refuses(store, "STORE_CONTRACT", () => store.turns.suspend({ ...parent, callIds: [], waits: one }));
      await refuses(store, "STORE_CONTRACT", () => store.turns.suspend({ ...parent, callIds: ["c"], waits }));
      await suspend(store, parent);
      await childEnds(store, own);
      const again = await store.leases.acquire({ ...requestOf("b"), ...resumes });
      assert.ok(again.kind === "granted", "the turn did not go on");
      await offered(store, "b", "second", { sessionId: "session-4", parent: parentCall });
      const next = [{ callId: "c", childSessionId: "session-4" }];
      const suspended = await store.turns.suspend({
        grant: grantOf("b", again.fencingToken),
        turnId: "turn-a",
        callIds: [],
        waits: next,
      });
      assert.equal(suspended.kind, "suspended");
      const { approvals } = await suspendedOf(store);
      assert.deepEqual(
        approvals.map(({ callId, child: awaited }) => [callId, awaited?.sessionId, awaited?.endedAtMs]),
        [["c", "session-4", undefined]],
      );
    },
  },
];
