/** Turns from begin to end, by their own holder. */
import assert from "node:assert/strict";
import { takenEntry } from "../../entry.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertGrew,
  ask,
  assertVerified,
  beginOf,
  calls,
  changesNothing,
  finishes,
  grantOf,
  holderOf,
  inputOf,
  isHeld,
  offered,
  recordsOf,
  refuses,
  results,
  runningOf,
  runs,
  says,
  session,
  startTurn,
  take,
} from "../scene.ts";

export const turnCases: readonly ConformanceCase[] = [
  {
    id: "TURN-BEGIN",
    title:
      "a grant that begins a turn is one step: lease, running turn, taken input and its user entry, and all outlive a crash",
    async run({ open, reopen }) {
      const { granted, grant, turnId } = await startTurn(await open(), "a");
      const store = await reopen();
      assert.equal((await store.leases.read(session))?.fencingToken, grant.fencingToken);
      const turn = (await runningOf(store)) ?? assert.fail("no running turn");
      const { startedAtMs, ...facts } = turn;
      assert.ok(Number.isFinite(startedAtMs), "the turn has no time");
      const { fencingToken } = grant;
      assert.deepEqual(facts, { sessionId: session, turnId, fencingToken, holder: holderOf("a"), state: "running" });
      assert.deepEqual(await store.turns.read(session, turnId), turn);
      assert.deepEqual(await inputOf(store, "input-a"), granted.input);
      const { entries, revision } = await store.transcript.load(session);
      assert.deepEqual(
        entries.map(({ key, body, turnId: of }) => [key, body, of]),
        [["input/input-a", takenEntry({ inputId: "input-a", text: "text of input-a" }).body, turnId]],
      );
      // The revision of the grant is the one before: a copy loaded at it lacks this entry only.
      assert.equal(granted.revision, 0);
      assertGrew("revision", granted.revision, revision);
      await assertVerified(store);
    },
  },
  {
    id: "TURN-RELEASE",
    title:
      "a grant that is released with its turn still running settles that turn as crashed, and no turn is left running",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await store.transcript.append({ grant, turnId, entries: [calls("k1", "c1")] });
      assert.equal((await store.leases.release(grant)).kind, "released");
      const after = await reopen();
      assert.equal(await runningOf(after), undefined);
      const turn = await after.turns.read(session, turnId);
      assert.equal(turn?.state === "ended" && `${turn.outcome} ${turn.reason}`, "interrupted crashed");
      const input = await inputOf(after, "input-a");
      assert.equal(input?.state === "settled" && input.end, "interrupted");
      await assertVerified(after);
    },
  },
  {
    id: "TURN-BEGIN-b",
    title: "a grant without a begin has no input and begins no turn; one of a changed session answers its revision",
    async run({ open }) {
      const store = await open();
      const a = await startTurn(store, "a");
      const end = await finishes(store, "a", a.grant);
      const { granted } = await take(store, "b");
      assert.equal(granted.input, undefined);
      assert.equal(granted.predecessors, undefined);
      assert.equal(granted.revision, end.revision);
      assert.equal(granted.revision, (await store.transcript.load(session)).revision);
      assert.equal(await runningOf(store), undefined);
    },
  },
  {
    id: "TURN-BEGIN-c",
    title:
      "a begin under a grant already held takes the inputs it names, in that order, and answers them again when repeated",
    async run({ open, reopen }) {
      const store = await open();
      for (const inputId of ["input-1", "input-2", "input-3"]) await offered(store, "a", inputId);
      const grant = await runs(store, "a", "input-1");
      const begun = await store.turns.begin(grant, "turn-a", ["input-3", "input-2"]);
      assert.equal(begun.kind, "begun");
      assert.deepEqual(
        begun.inputs.map((input) => [input.inputId, input.state, input.turnId]),
        [
          ["input-3", "taken", "turn-a"],
          ["input-2", "taken", "turn-a"],
        ],
      );
      const again = await reopen();
      const repeated = await changesNothing(again, () => again.turns.begin(grant, "turn-a", ["input-3", "input-2"]));
      assert.deepEqual(repeated, begun);
      await assertVerified(again);
    },
  },
  {
    id: "TURN-BEGIN-d",
    title: "a begin that names an input which is not pending begins nothing and takes nothing",
    async run({ open }) {
      const store = await open();
      await offered(store, "a", "input-1");
      await store.inbox.withdraw(session, "input-1", "cancelled");
      const { grant } = await take(store, "holder");
      await offered(store, "a", "input-2");
      for (const missing of ["input-1", "input-9"]) {
        const answer = await changesNothing(store, () => store.turns.begin(grant, "turn-1", ["input-2", missing]));
        assert.deepEqual(answer, { kind: "not-pending", inputId: missing });
      }
      assert.equal(await store.turns.read(session, "turn-1"), undefined);
    },
  },
  {
    id: "TURN-BEGIN-e",
    title:
      "a begin under a replaced grant is stale; a second turn beside a running one, or an ended one again, is refused",
    async run({ open }) {
      const store = await open();
      const a = await startTurn(store, "a");
      await refuses(store, "STORE_CONTRACT", () => store.turns.begin(a.grant, "turn-other", []));
      const b = await take(store, "b", { reclaim: a.grant });
      const stale = await changesNothing(store, () => store.turns.begin(a.grant, "turn-a", []));
      assert.deepEqual(stale, { kind: "stale-token" });
      await refuses(store, "STORE_CONTRACT", () => store.turns.begin(b.grant, "turn-a", []));
      assert.deepEqual(await store.turns.begin(b.grant, "turn-b", []), { kind: "begun", inputs: [] });
    },
  },
  {
    id: "TURN-BEGIN-f",
    title: "an acquire repeated after an unknown outcome answers the grant and the input that its turn took",
    async run({ open, reopen }) {
      const { granted, grant } = await startTurn(await open(), "a");
      const store = await reopen();
      const again = await ask(store, "a");
      assert.equal(again.kind, "granted");
      assert.equal(again.fencingToken, grant.fencingToken);
      assert.deepEqual(again.input, granted.input);
      assert.equal((await recordsOf(store)).turns.length, 1);
      await assertVerified(store);
    },
  },
  {
    id: "TURN-BEGIN-h",
    title:
      "an acquire repeated after an unknown outcome, whose turn was settled by somebody else meanwhile, has nothing to run; another holder is refused the turn",
    async run({ open, host }) {
      const store = await open();
      await startTurn(store, "a", { ttlMs: 5_000 });
      await host.advance(5_000);
      const b = await startTurn(store, "b");
      await store.turns.end({ grant: b.grant, turnId: b.turnId, outcome: "answered", release: true });
      await offered(store, "a", "input-later");
      assert.deepEqual(await changesNothing(store, () => ask(store, "a")), { kind: "nothing-to-run" });
      await refuses(store, "STORE_CONTRACT", () => ask(store, "a#2", { begin: beginOf("a") }));
    },
  },
  {
    id: "TURN-BEGIN-g",
    title: "a turn begins once: an acquire that names one of before is refused, and nothing is taken",
    async run({ open }) {
      const store = await open();
      const { grant } = await startTurn(store, "a");
      await finishes(store, "a", grant);
      await offered(store, "a", "input-2");
      await refuses(store, "STORE_CONTRACT", () => ask(store, "a#2", { begin: beginOf("a") }));
    },
  },
  {
    id: "TURN-END",
    title: "a turn ends with outcome, reason, detail and usage, adds its last entries, and frees the lease when asked",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const usage = { inputTokens: 12, outputTokens: 3 };
      const end = {
        grant,
        turnId,
        outcome: "failed",
        reason: "MODEL_ERROR",
        detail: "The model said no.",
        usage,
      } as const;
      const ended = await store.turns.end({ ...end, entries: [says("last", "sorry")], release: true });
      assert.equal(ended.kind, "ended");
      const again = await reopen();
      const turn = (await again.turns.read(session, turnId)) ?? assert.fail("no turn");
      assert.equal(turn.state, "ended");
      const { startedAtMs, endedAtMs, ...facts } = turn;
      assert.ok(endedAtMs >= startedAtMs, `ended at ${endedAtMs}, started at ${startedAtMs}`);
      const { fencingToken } = grant;
      const expected = { sessionId: session, turnId, fencingToken, holder: holderOf("a"), state: "ended" };
      const { outcome, reason, detail } = end;
      assert.deepEqual(facts, { ...expected, outcome, reason, detail, usage });
      assert.equal(await again.leases.read(session), undefined);
      assert.equal(await runningOf(again), undefined);
      assert.equal((await again.transcript.load(session)).revision, ended.revision);
      assert.equal((await recordsOf(again)).entries.at(-1)?.key, "last");
      await assertVerified(again);
    },
  },
  {
    id: "TURN-END-b",
    title: "without `release` the lease stands, and the next turn begins under the same grant",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await store.turns.end({ grant, turnId, outcome: "answered", release: false });
      assert.equal((await store.leases.read(session))?.fencingToken, grant.fencingToken);
      await offered(store, "a", "input-2");
      assert.equal((await store.turns.begin(grant, "turn-a#2", ["input-2"])).kind, "begun");
      await finishes(store, "a#2", grant);
      await assertVerified(store);
    },
  },
  {
    id: "TURN-END-c",
    title:
      "an end repeated after an unknown outcome is answered the same and changes nothing, though the session is free or another's",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const end = { grant, turnId, outcome: "answered", entries: [says("last", "bye")], release: true } as const;
      const first = await store.turns.end(end);
      assert.equal(first.kind, "ended");
      const again = await reopen();
      const repeated = await changesNothing(again, () => again.turns.end(end));
      assert.equal(repeated.kind === "ended" && repeated.revision, first.revision);
      await startTurn(again, "b");
      const late = await changesNothing(again, () => again.turns.end(end));
      assert.equal(late.kind, "ended");
    },
  },
  {
    id: "TURN-END-d",
    title: "under a replaced grant an end is stale and changes nothing, whatever it says",
    async run({ open }) {
      for (const outcome of ["answered", "interrupted", "failed"] as const) {
        const store = await open();
        const { grant, turnId } = await startTurn(store, "a");
        await store.transcript.append({ grant, turnId, entries: [calls("call", "call-1")] });
        await startTurn(store, "b", { reclaim: grant });
        const entries = [results("result", "call-1")];
        for (const last of [{ entries }, {}, { reason: "user-stop" }]) {
          const end = { grant, turnId, outcome, release: true, ...last };
          assert.deepEqual(await changesNothing(store, () => store.turns.end(end)), { kind: "stale-token" });
        }
      }
    },
  },
  {
    id: "TURN-END-e",
    title: "a turn that was never begun cannot end, and nothing joins one that has ended",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await refuses(store, "STORE_CONTRACT", () =>
        store.turns.end({ grant, turnId: "turn-unknown", outcome: "answered", release: true }),
      );
      await store.turns.end({ grant, turnId, outcome: "answered", release: false });
      await refuses(store, "STORE_CONTRACT", () =>
        store.transcript.append({ grant, turnId, entries: [says("late", "more")] }),
      );
      await refuses(store, "STORE_CONTRACT", () =>
        store.transcript.append({ grant, turnId: "turn-unknown", entries: [says("late", "more")] }),
      );
    },
  },
  {
    id: "TURN-END-f",
    title:
      "a turn is ended by its own grant alone: its successor's end of it is stale, in whatever words, and frees nothing",
    async run({ open }) {
      const store = await open();
      const { turnId } = await startTurn(store, "a");
      const { grant } = await take(store, "b", { reclaim: grantOf("a", 1) });
      // As the settlement worded it, and otherwise.
      for (const last of [{ outcome: "interrupted", reason: "crashed" }, { outcome: "answered" }] as const) {
        const end = { grant, turnId, release: true, ...last };
        assert.deepEqual(await changesNothing(store, () => store.turns.end(end)), { kind: "stale-token" });
      }
      await isHeld(store, "b");
    },
  },
  {
    id: "TURN-RUNNING",
    title: "running turns are answered oldest first, with lease and pending count; of one session where it is named",
    async run({ open, host }) {
      const store = await open();
      assert.deepEqual(await store.turns.running(), []);
      for (const [index, name] of ["z", "m", "a"].entries()) {
        const sessionId = `session-${name}`;
        await offered(store, name, "input-1", { sessionId });
        for (let count = 0; count < index; count++) await offered(store, name, `more-${count}`, { sessionId });
        await take(store, name, { sessionId, begin: beginOf(name) });
        await host.advance(10);
      }
      const views = await store.turns.running();
      assert.deepEqual(
        views.map((view) => [view.turn.turnId, view.lease?.sessionId, view.pendingCount]),
        [
          ["turn-z", "session-z", 0],
          ["turn-m", "session-m", 1],
          ["turn-a", "session-a", 2],
        ],
      );
      assert.deepEqual(await store.turns.running("session-m"), [views[1]]);
      assert.deepEqual(await store.turns.running("session-none"), []);
      await host.advance(60_000);
      const [lapsed] = await store.turns.running("session-z");
      assert.equal(lapsed?.lease?.standing, "expired");
      assert.equal(await store.turns.read("session-m", "turn-z"), undefined);
    },
  },
];
