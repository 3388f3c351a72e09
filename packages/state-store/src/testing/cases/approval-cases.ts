/** Turns that wait for approval, and that nobody holds meanwhile (rule 7.19). */
import assert from "node:assert/strict";
import type { OnBusy } from "../../inbox.ts";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  ask,
  assertGrew,
  assertVerified,
  beginOf,
  calls,
  changesNothing,
  draft,
  finishes,
  holderOf,
  inputOf,
  offered,
  offerOf,
  recordsOf,
  refuses,
  results,
  runningOf,
  runs,
  says,
  session,
  startTurn,
  take,
  ttlMs,
} from "../scene.ts";
import { suspended, decide, resuming, statusOf } from "../suspended-scene.ts";

export const approvalCases: readonly ConformanceCase[] = [
  {
    id: "APPROVAL-SUSPEND",
    title: "a suspended turn frees its lease, keeps its inputs and occupies its session, also after a crash",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId, turn } = await suspended(store);
      assert.equal(await store.leases.read(session), undefined, "somebody holds the session");
      const again = await reopen();
      const [view] = await again.turns.running(session);
      assert.deepEqual(view?.turn, turn);
      assert.equal(view.lease, undefined);
      assert.deepEqual(
        turn.approvals.map(({ callId, name, answer }) => [callId, name, answer]),
        [
          ["call-1", "shell", undefined],
          ["call-2", "shell", undefined],
        ],
      );
      assert.deepEqual(turn.usage, { inputTokens: 7 });
      assert.equal((await inputOf(again, "input-a")).state, "taken");
      await offered(again, "b", "input-b");
      for (const request of [{}, resuming("b")]) {
        const refused = await changesNothing(again, () => ask(again, "b", request));
        assert.equal(refused.kind, "suspended", `the session was given away: ${refused.kind}`);
        assert.deepEqual(refused.turn, turn);
      }
      const bare = await again.leases.acquire({ sessionId: session, holder: holderOf("c"), ttlMs });
      assert.equal(bare.kind, "suspended");
      assert.equal((await again.turns.suspend({ grant, turnId, callIds: ["call-1", "call-2"] })).kind, "suspended");
      await assertVerified(again);
    },
  },
  {
    id: "APPROVAL-SUSPEND-e",
    title: "a suspension that is repeated once the turn has gone on or ended says so, and is no loss of the lease",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await suspended(store, ["call-1"]);
      const repeated = { grant, turnId, callIds: ["call-1"] };
      const tells = async (on: StateStore, state: string): Promise<void> => {
        const answer = await changesNothing(on, () => on.turns.suspend(repeated));
        assert.ok(answer.kind === "was-suspended", `it was told as ${answer.kind}`);
        assert.deepEqual(answer.turn, await on.turns.read(session, turnId));
        assert.equal(answer.turn.state, state);
        // What was never asked about was never suspended over.
        for (const callIds of [[], ["call-0"], ["call-1", "call-0"]])
          assert.deepEqual(await changesNothing(on, () => on.turns.suspend({ grant, turnId, callIds })), {
            kind: "stale-token",
          });
      };
      await decide(store, "call-1");
      const resumed = await ask(store, "b", resuming("b"));
      assert.ok(resumed.kind === "granted", `it was not resumed: ${resumed.kind}`);
      await tells(store, "running");
      const own = { sessionId: session, holderId: holderOf("b").holderId, fencingToken: resumed.fencingToken };
      const second = await store.turns.suspend({ grant: own, turnId, callIds: ["call-2"] });
      assert.equal(second.kind, "suspended");
      await tells(store, "suspended");
      await store.turns.requestStop(session, { hard: true, reason: "user-stop", by: "somebody" });
      const again = await reopen();
      await tells(again, "ended");
      await assertVerified(again);
    },
  },
  {
    id: "APPROVAL-SUSPEND-f",
    title:
      "a suspension that a stop turned into the end says so again when it is repeated, as one stopped meanwhile does",
    async run({ open }) {
      const store = await open();
      for (const name of ["a", "b"]) {
        const { grant, turnId } = await startTurn(store, name);
        await store.transcript.append({ grant, turnId, entries: [calls(`step-${name}`, "call-1")] });
        const stop = (): Promise<unknown> =>
          store.turns.requestStop(session, { hard: true, reason: "user-stop", by: "somebody" });
        const request = { grant, turnId, callIds: ["call-1"] };
        if (name === "a") await stop();
        assert.equal((await store.turns.suspend(request)).kind, name === "a" ? "stopped" : "suspended");
        if (name === "b") await stop();
        const answer = await changesNothing(store, () => store.turns.suspend(request));
        assert.ok(answer.kind === "was-suspended", `it was told as ${answer.kind}`);
        assert.deepEqual(answer.turn, await store.turns.read(session, turnId));
        assert.ok(answer.turn.state === "ended" && answer.turn.stop?.hard, "it did not end by the stop");
      }
      await assertVerified(store);
    },
  },
  {
    id: "APPROVAL-SUSPEND-b",
    title: "a turn is suspended over open calls that were never asked about, while it holds an input; else it runs on",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const entries = [calls("step", "call-0", "call-1"), results("result-0", "call-0")];
      await store.transcript.append({ grant, turnId, entries });
      for (const callIds of [[], ["call-0"], ["call-none"], ["call-1", "call-1"]])
        await refuses(store, "STORE_CONTRACT", () => store.turns.suspend({ grant, turnId, callIds }));
      await refuses(store, "STORE_CONTRACT", () =>
        store.turns.suspend({ grant, turnId: "turn-none", callIds: ["call-1"] }),
      );
      const settledInputs = [{ inputId: "input-a", end: "answered" as const }];
      await store.transcript.append({ grant, turnId, entries: [says("said", "done")], settledInputs });
      await refuses(store, "STORE_CONTRACT", () => store.turns.suspend({ grant, turnId, callIds: ["call-1"] }));
    },
  },
  {
    id: "APPROVAL-SUSPEND-c",
    title: "a holder that was replaced suspends nothing, and one that suspended writes nothing more",
    async run({ open, host }) {
      const store = await open();
      const a = await startTurn(store, "a", { ttlMs: 5_000 });
      await store.transcript.append({ grant: a.grant, turnId: a.turnId, entries: [calls("step", "call-1")] });
      await host.advance(5_001);
      const b = await startTurn(store, "b");
      const late = { grant: a.grant, turnId: a.turnId, callIds: ["call-1"] };
      assert.deepEqual(await changesNothing(store, () => store.turns.suspend(late)), { kind: "stale-token" });
      await finishes(store, "b", b.grant);

      const c = await startTurn(store, "c");
      const turn = { grant: c.grant, turnId: c.turnId };
      await store.transcript.append({ ...turn, entries: [calls("step-c", "call-1")] });
      assert.equal((await store.turns.suspend({ ...turn, callIds: ["call-1"] })).kind, "suspended");
      const writes: readonly (() => Promise<{ readonly kind: string }>)[] = [
        () => store.transcript.append({ ...turn, entries: [results("late", "call-1")] }),
        () => store.turns.end({ ...turn, outcome: "answered", release: true }),
        () => store.turns.begin(c.grant, c.turnId, []),
        () => store.inbox.takeSteers(c.grant, c.turnId),
      ];
      for (const write of writes) assert.equal((await changesNothing(store, write)).kind, "stale-token");
      assert.equal((await changesNothing(store, () => store.leases.renew(c.grant, ttlMs))).kind, "lost");
      assert.equal((await changesNothing(store, () => store.leases.release(c.grant))).kind, "stale");
    },
  },
  {
    id: "APPROVAL-SUSPEND-d",
    title: "a turn that was asked to stop before it could be suspended ends as that stop says",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await store.transcript.append({ grant, turnId, entries: [calls("step", "call-1")] });
      await offered(store, "b", "input-b");
      await store.turns.requestStop(session, { hard: false, reason: "user-stop", by: "cli" });
      const answer = await store.turns.suspend({ grant, turnId, callIds: ["call-1"] });
      assert.equal(answer.kind, "stopped");
      assert.equal(answer.head?.inputId, "input-b");
      const again = await reopen();
      const input = await inputOf(again, "input-a");
      assert.equal(input.state === "settled" && input.end, "interrupted");
      assert.equal(await statusOf(again, "call-1"), "interrupted: Not run");
      await assertVerified(again);
      await runs(again, "b", "input-b");
    },
  },
  {
    id: "APPROVAL-ANSWER",
    title: "the first answer to a call counts, is kept over a crash, and only what was asked can be answered",
    async run({ open, reopen }) {
      const store = await open();
      assert.deepEqual(await decide(store, "call-1"), { kind: "nothing-asked" });
      const { turnId } = await suspended(store);
      for (const callId of ["call-0", "call-none"])
        assert.deepEqual(await changesNothing(store, () => decide(store, callId)), { kind: "nothing-asked" });
      const elsewhere = {
        sessionId: session,
        callId: "call-1",
        turnId: "turn-before",
        decision: "allow",
        by: "b",
      } as const;
      assert.deepEqual(await changesNothing(store, () => store.turns.answer(elsewhere)), { kind: "nothing-asked" });
      const first = await store.turns.answer({ ...elsewhere, turnId, decision: "deny" });
      assert.equal(first.kind, "recorded");
      const again = await reopen();
      const second = await changesNothing(again, () => decide(again, "call-1"));
      assert.ok(second.kind === "already-answered", `the second answer was ${second.kind}`);
      assert.deepEqual([second.answer.decision, second.answer.by], ["deny", "b"]);
      const other = await decide(again, "call-2");
      assert.ok(other.kind === "recorded", `the other call: ${other.kind}`);
      assert.deepEqual(
        other.turn.approvals.map(({ answer }) => answer?.decision),
        ["deny", "allow"],
      );
    },
  },
  {
    id: "APPROVAL-ANSWER-b",
    title: "of two answers at once one is recorded, and the other is told it",
    async run({ open }) {
      const store = await open();
      await suspended(store, ["call-1"]);
      const both = await Promise.all([decide(store, "call-1", "allow"), decide(store, "call-1", "deny")]);
      assert.deepEqual(both.map(({ kind }) => kind).toSorted(), ["already-answered", "recorded"]);
    },
  },
  {
    id: "APPROVAL-RESUME",
    title: "once all is answered the next grant that may resume the turn does, under a new token, ahead of what waits",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await suspended(store);
      await offered(store, "b", "input-b");
      await decide(store, "call-1", "allow");
      assert.equal((await ask(store, "b", resuming("b"))).kind, "suspended", "it was resumed with a question open");
      await decide(store, "call-2", "deny");
      const again = await reopen();
      assert.equal((await changesNothing(again, () => ask(again, "b"))).kind, "suspended");
      const other = { begin: { ...beginOf("b"), resumes: "turn-other" } };
      assert.equal((await changesNothing(again, () => ask(again, "b", other))).kind, "suspended", "another was meant");
      const granted = await ask(again, "b", { begin: { ...beginOf("b"), resumes: turnId } });
      assert.ok(granted.kind === "granted", `the turn was to be resumed: ${granted.kind}`);
      assertGrew("the fencing token", grant.fencingToken, granted.fencingToken);
      assert.deepEqual([granted.resumed?.turnId, granted.input?.inputId], [turnId, "input-a"]);
      assert.deepEqual(
        granted.resumed?.approvals?.map(({ answer }) => answer?.decision),
        ["allow", "deny"],
      );
      assert.equal(granted.revision, (await again.transcript.load(session)).revision);
      const fresh = { sessionId: session, holderId: holderOf("b").holderId, fencingToken: granted.fencingToken };
      const late = { grant, turnId, entries: [results("late", "call-1")] };
      assert.equal((await changesNothing(again, () => again.transcript.append(late))).kind, "stale-token");
      const entries = [
        results("result-1", "call-1"),
        draft("result-2", { role: "tool", callId: "call-2", name: "shell", status: "denied", output: "no" }),
      ];
      await again.transcript.append({ grant: fresh, turnId, entries });
      const end = await again.turns.end({ grant: fresh, turnId, outcome: "answered", release: true });
      assert.equal(end.kind === "ended" && end.head?.inputId, "input-b");
      await assertVerified(again);
      const ended = await again.turns.read(session, turnId);
      assert.equal(ended?.state === "ended" && ended.approvals?.length, 2, "who decided is forgotten");
      assert.deepEqual((await decide(again, "call-1")).kind, "already-answered");
    },
  },
  {
    id: "APPROVAL-RESUME-b",
    title: "a holder that asks again after it resumed a turn is answered the same grant",
    async run({ open, reopen }) {
      const store = await open();
      const { turnId } = await suspended(store, ["call-1"]);
      await decide(store, "call-1");
      const first = await ask(store, "b", resuming("b"));
      const again = await reopen();
      const second = await ask(again, "b", resuming("b"));
      assert.deepEqual(second, first);
      assert.equal(second.kind === "granted" && second.resumed?.turnId, turnId);
    },
  },
  {
    id: "APPROVAL-RESUME-c",
    title: "a resumed turn may ask again, and is settled as crashed when its new holder dies",
    async run({ open, reopen, host }) {
      const store = await open();
      const { turnId } = await suspended(store, ["call-1"]);
      await decide(store, "call-1");
      const b = await take(store, "b", { ...resuming("b"), ttlMs: 5_000 });
      const asked = { grant: b.grant, turnId, callIds: ["call-1"] };
      await refuses(store, "STORE_CONTRACT", () => store.turns.suspend(asked));
      await store.transcript.append({ grant: b.grant, turnId, entries: [results("result-1", "call-1")] });
      const second = await store.turns.suspend({ ...asked, callIds: ["call-2"] });
      assert.equal(second.kind === "suspended" && second.turn.approvals.length, 2);
      await decide(store, "call-2");
      await take(store, "c", { ...resuming("c"), ttlMs: 5_000 });
      await host.advance(5_001);
      const again = await reopen();
      await startTurn(again, "d");
      const turn = await again.turns.read(session, turnId);
      assert.equal(turn?.state === "ended" && turn.reason, "crashed");
      assert.equal(await statusOf(again, "call-2"), "unknown: Outcome");
      await assertVerified(again);
    },
  },
  {
    id: "APPROVAL-STOP",
    title:
      "a stop ends a suspended turn in one step: its calls did not run, its inputs are interrupted, the queue goes on",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await suspended(store);
      await decide(store, "call-1");
      await offered(store, "b", "input-b");
      const stop = { hard: false, reason: "user-message", by: "cli" } as const;
      const other = grant.fencingToken + 1;
      assert.equal((await store.turns.requestStop(session, stop, other)).kind, "nothing-running");
      const answer = await store.turns.requestStop(session, stop, grant.fencingToken);
      assert.ok(answer.kind === "stopped", `the stop was answered ${answer.kind}`);
      assert.deepEqual(
        [answer.settled.turn.turnId, answer.settled.inputIds, answer.settled.openCallIds],
        [turnId, ["input-a"], ["call-1", "call-2"]],
      );
      assert.equal(answer.head?.inputId, "input-b");
      const again = await reopen();
      const turn = await again.turns.read(session, turnId);
      assert.ok(turn?.state === "ended", "the turn has not ended");
      assert.deepEqual([turn.outcome, turn.reason, turn.stop?.by], ["interrupted", "user-message", "cli"]);
      assert.deepEqual(turn.usage, { inputTokens: 7 });
      assert.equal(await statusOf(again, "call-1"), "interrupted: Not run");
      assert.equal((await decide(again, "call-2")).kind, "nothing-asked");
      assert.equal((await again.turns.requestStop(session, stop)).kind, "nothing-running");
      await assertVerified(again);
      await runs(again, "b", "input-b");
    },
  },
  {
    id: "APPROVAL-BUSY",
    title: "a message to a session whose turn waits for approval finds it busy, as each policy says",
    async run({ open }) {
      const store = await open();
      const { turn } = await suspended(store, ["call-1"]);
      const offers = async (inputId: string, onBusy: OnBusy): ReturnType<StateStore["inbox"]["offer"]> =>
        store.inbox.offer(offerOf("b", inputId, { onBusy }));
      const rejected = await changesNothing(store, () => offers("input-r", "reject"));
      assert.ok(rejected.kind === "busy", `reject was answered ${rejected.kind}`);
      assert.deepEqual(rejected.suspended, turn);
      for (const [onBusy, isOrphan] of [
        ["wait", false],
        ["interrupt", false],
        ["queue", true],
        ["steer", true],
      ] as const) {
        const accepted = await offers(`input-${onBusy}`, onBusy);
        assert.ok(accepted.kind === "accepted", `${onBusy} was answered ${accepted.kind}`);
        assert.deepEqual(accepted.suspended, turn);
        assert.equal(accepted.input.runner === undefined, isOrphan);
      }
      await decide(store, "call-1");
      const { grant } = await take(store, "b", resuming("b"));
      const steers = await store.inbox.takeSteers(grant, turn.turnId);
      assert.deepEqual(steers.kind === "taken" && steers.inputs.map(({ inputId }) => inputId), ["input-steer"]);
    },
  },
  {
    id: "APPROVAL-TTL",
    title: "a suspended turn has no lease that could run out: nobody reaps it, however long it waits",
    async run({ open, reopen, host }) {
      const store = await open();
      const { grant, turn } = await suspended(store, ["call-1"]);
      await host.advance(3_600_000);
      const again = await reopen();
      assert.equal((await changesNothing(again, () => again.turns.settleForeign(grant))).kind, "changed");
      const reclaim = { ...resuming("b"), reclaim: grant };
      assert.equal((await changesNothing(again, () => ask(again, "b", reclaim))).kind, "suspended");
      assert.equal(await runningOf(again), undefined);
      assert.deepEqual((await again.turns.running(session))[0]?.turn, turn);
      await decide(again, "call-1");
      assert.equal((await ask(again, "b", resuming("b"))).kind, "granted");
    },
  },
  {
    id: "APPROVAL-IMPORT",
    title: "an import leaves the calls that wait to the store they were asked in, and a deletion forgets them",
    async run({ open }) {
      const store = await open();
      const { turnId } = await suspended(store);
      const records = await recordsOf(store);
      assert.equal((await store.sessions.delete(session)).kind, "deleted");
      assert.equal((await decide(store, "call-1")).kind, "nothing-asked");
      assert.equal((await store.sessions.importSession(records)).kind, "imported");
      const turn = await store.turns.read(session, turnId);
      assert.equal(turn?.state === "ended" && turn.outcome, "interrupted");
      assert.equal(await statusOf(store, "call-2"), "interrupted: Not run");
      assert.equal((await decide(store, "call-1")).kind, "nothing-asked");
      await assertVerified(store);
      await offered(store, "b", "input-b");
      const granted = await ask(store, "b", resuming("b"));
      assert.equal(granted.kind === "granted" && granted.input?.inputId, "input-b");
      assert.equal(granted.kind === "granted" && granted.resumed, undefined);
    },
  },
];
