/** Calls whose results whoever called sends: their turn is suspended until they came, or their time is over. */
import assert from "node:assert/strict";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  ask,
  assertVerified,
  calls,
  changesNothing,
  holderOf,
  offered,
  runs,
  session,
  startTurn,
  take,
} from "../scene.ts";
import { suspended, decide, resuming, statusOf } from "../suspended-scene.ts";

export const awaitedResultCases: readonly ConformanceCase[] = [
  {
    id: "APPROVAL-RESULT",
    title: "an answer keeps the result that came with it, also after a crash, for whoever goes on with the turn",
    async run({ open, reopen }) {
      const store = await open();
      await suspended(store);
      const output = { rain: [1, "\u{1F327}"], none: null };
      const request = { sessionId: session, callId: "call-1", decision: "allow", by: "somebody" } as const;
      assert.equal((await store.turns.answer({ ...request, output })).kind, "recorded");
      assert.equal((await store.turns.answer({ ...request, callId: "call-2", output: "" })).kind, "recorded");
      const again = await reopen();
      const resumed = await ask(again, "b", resuming("b"));
      assert.equal(resumed.kind, "granted", `the turn was to go on: ${resumed.kind}`);
      assert.deepEqual(
        resumed.resumed?.approvals?.map(({ answer }) => answer?.output),
        [output, ""],
      );
      const judged = { sessionId: session, holderId: holderOf("b").holderId, fencingToken: resumed.fencingToken };
      assert.equal((await again.turns.settleForeign(judged)).kind, "settled");
      assert.equal(await statusOf(again, "call-1"), `ok: ${JSON.stringify(output).slice(1, 8)}`);
      await assertVerified(again);
    },
  },
  {
    id: "APPROVAL-RESULT-b",
    title: "a result that an answer brought stands in the transcript, where its turn is stopped before it goes on",
    async run({ open }) {
      const store = await open();
      await suspended(store);
      const request = { sessionId: session, callId: "call-1", decision: "allow", by: "somebody" } as const;
      await store.turns.answer({ ...request, output: "rained" });
      await store.turns.requestStop(session, { hard: true, reason: "user-stop", by: "cli" });
      assert.equal(await statusOf(store, "call-1"), 'ok: rained"');
      assert.equal(await statusOf(store, "call-2"), "interrupted: Not run");
      await assertVerified(store);
    },
  },
  {
    id: "APPROVAL-RESULTS",
    title:
      "a turn whose caller does not bring its results in time is ended, whoever looks; before that it is left alone",
    async run({ open, reopen, host }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a", { ttlMs: 5_000 });
      await store.transcript.append({ grant, turnId, entries: [calls("step", "call-1", "call-2", "call-3")] });
      const results = { callIds: ["call-1", "call-2"], waitMs: 60_000 };
      const callIds = ["call-1", "call-2", "call-3"];
      const answer = await store.turns.suspend({ grant, turnId, callIds, results, usage: { inputTokens: 7 } });
      assert.ok(answer.kind === "suspended", `the turn was to be suspended: ${answer.kind}`);
      assert.deepEqual(
        answer.turn.approvals.map(({ askedAtMs, resultUntilMs }) => (resultUntilMs ?? 0) - askedAtMs > 0),
        [true, true, false],
      );
      await offered(store, "b", "input-b");
      const overdue = async (of: StateStore) => (await of.turns.running(session))[0]?.isOverdue;
      const refused = { kind: "nothing-running" };
      assert.deepEqual(await changesNothing(store, () => store.turns.stopOverdue(session)), refused);
      assert.deepEqual(await store.turns.stopOverdue("session-none"), refused);
      await store.turns.answer({ sessionId: session, callId: "call-1", decision: "allow", by: "a", output: "raining" });
      assert.equal(await overdue(store), undefined);
      await host.advance(60_001);
      const again = await reopen();
      assert.equal(await overdue(again), true);
      const stopped = await again.turns.stopOverdue(session);
      assert.ok(stopped.kind === "stopped", `the turn was to be ended: ${stopped.kind}`);
      assert.deepEqual(stopped.settled.inputIds, ["input-a"]);
      assert.equal(stopped.head?.inputId, "input-b");
      const turn = await again.turns.read(session, turnId);
      assert.ok(turn?.state === "ended", "the turn has not ended");
      assert.deepEqual([turn.outcome, turn.reason, turn.usage], ["interrupted", "deadline", { inputTokens: 7 }]);
      assert.equal(await statusOf(again, "call-1"), "ok: raining");
      assert.equal(await statusOf(again, "call-2"), "interrupted: Not run");
      assert.deepEqual(await changesNothing(again, () => again.turns.stopOverdue(session)), refused);
      await assertVerified(again);
      await runs(again, "b", "input-b");
    },
  },
  {
    id: "APPROVAL-RESULTS-b",
    title: "a turn that has its results goes on however late that is, and one that asks for approval waits for ever",
    async run({ open, host }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a", { ttlMs: 5_000 });
      await store.transcript.append({ grant, turnId, entries: [calls("step", "call-1", "call-2")] });
      const results = { callIds: ["call-1"], waitMs: 60_000 };
      await store.turns.suspend({ grant, turnId, callIds: ["call-1", "call-2"], results });
      assert.deepEqual(await changesNothing(store, () => decide(store, "call-1")), { kind: "nothing-asked" });
      await store.turns.answer({ sessionId: session, callId: "call-1", decision: "allow", by: "a", output: "raining" });
      await host.advance(600_000);
      assert.equal((await store.turns.running(session))[0]?.isOverdue, undefined);
      const left = await changesNothing(store, () => store.turns.stopOverdue(session));
      assert.deepEqual(left, { kind: "nothing-running" });
      await decide(store, "call-2");
      const running = await take(store, "b", resuming("b"));
      assert.equal(running.granted.resumed?.turnId, turnId);
      assert.deepEqual(await changesNothing(store, () => store.turns.stopOverdue(session)), {
        kind: "nothing-running",
      });
    },
  },
];
