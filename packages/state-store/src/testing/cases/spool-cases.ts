/** What a store refused is kept in the spool, and comes back with the next grant: once, in order, before anything else. */
import assert from "node:assert/strict";
import type { SpoolStep } from "../../spool.ts";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertVerified,
  beginOf,
  calls,
  changesNothing,
  contextKeys,
  draft,
  holderOf,
  inputOf,
  offered,
  recordsOf,
  results,
  says,
  session,
  startTurn,
  take,
} from "../scene.ts";

type Turn = Awaited<ReturnType<typeof startTurn>>;

/** `a` runs a turn whose call `c` is stored; what it produces from here on the store does not take. */
async function callingTurn(store: StateStore): Promise<Turn> {
  const turn = await startTurn(store, "a");
  await store.transcript.append({ grant: turn.grant, turnId: turn.turnId, entries: [calls("call", "c")] });
  return turn;
}

const stepOf = ({ grant, turnId }: Turn, step: Partial<SpoolStep>): SpoolStep => ({
  grant,
  turnId,
  entries: [],
  ...step,
});

async function lateKeys(store: StateStore): Promise<readonly string[]> {
  return (await recordsOf(store)).entries.filter((entry) => entry.late).map((entry) => entry.key);
}

async function stepCount(store: StateStore): Promise<number> {
  const [view] = await store.spool.waiting(session);
  return view?.stepCount ?? 0;
}

/** The next turn, of `b`, which names the grant of `a` as dead. */
async function nextTurn(store: StateStore, { grant }: Turn): Promise<Turn> {
  return startTurn(store, "b", { reclaim: grant });
}

export const spoolCases: readonly ConformanceCase[] = [
  {
    id: "SPOOL-1",
    title: "what a turn had produced when the store failed is replayed by the next grant: once, in order, before it",
    async run({ open, reopen }) {
      const broken = await open();
      const turn = await callingTurn(broken);
      await broken.spool.keep(stepOf(turn, { entries: [results("result", "c")] }));
      await broken.spool.keep(stepOf(turn, { entries: [says("said", "1"), calls("open", "d")] }));
      const store = await reopen();
      assert.equal(await stepCount(store), 2);
      const next = await nextTurn(store, turn);
      const keys = ["input/input-a", "call", "result", "said", "open", "turn-a/d/unknown", "input/input-b"];
      assert.deepEqual(await contextKeys(store), keys);
      assert.equal(await stepCount(store), 0);
      await startTurn(store, "c", { reclaim: next.grant });
      assert.deepEqual(await contextKeys(store), [...keys, "input/input-c"]);
      await assertVerified(store);
    },
  },
  {
    id: "SPOOL-1b",
    title: "a turn whose end is in the spool ends as it says, and its inputs with it",
    async run({ open }) {
      const store = await open();
      const turn = await callingTurn(store);
      await store.spool.keep(stepOf(turn, { entries: [results("result", "c")] }));
      await store.spool.keep(stepOf(turn, { entries: [says("answer", "42")], end: { outcome: "answered" } }));
      const next = await nextTurn(store, turn);
      assert.equal(next.granted.predecessors, undefined, "the turn had ended itself");
      const ended = await store.turns.read(session, turn.turnId);
      assert.ok(ended?.state === "ended" && ended.outcome === "answered", `the turn is ${ended?.state}`);
      const input = await inputOf(store, "input-a");
      assert.ok(input.state === "settled" && input.end === "answered", `the input is ${input.state}`);
      await assertVerified(store);
    },
  },
  {
    id: "SPOOL-1c",
    title: "a step that had been committed after all, or kept twice, is stored once",
    async run({ open }) {
      const store = await open();
      const turn = await callingTurn(store);
      const step = { grant: turn.grant, turnId: turn.turnId, entries: [results("result", "c"), says("said", "1")] };
      await store.transcript.append(step);
      await store.spool.keep(step);
      await store.spool.keep(step);
      await nextTurn(store, turn);
      assert.deepEqual(await contextKeys(store), ["input/input-a", "call", "result", "said", "input/input-b"]);
      assert.deepEqual(await lateKeys(store), []);
    },
  },
  {
    id: "SPOOL-1d",
    title: "what comes after its turn was settled is late: shown, no model context, settling nothing",
    async run({ open }) {
      const store = await open();
      const turn = await callingTurn(store);
      await store.turns.settleForeign(turn.grant);
      const before = await recordsOf(store);
      const settledInputs = [{ inputId: "input-a", end: "answered" }] as const;
      await store.spool.keep(stepOf(turn, { entries: [results("result", "c")], settledInputs }));
      await store.spool.keep(stepOf(turn, { entries: [says("answer", "42")], end: { outcome: "answered" } }));
      await startTurn(store, "b");
      assert.deepEqual(await lateKeys(store), ["result/late", "answer/late"]);
      assert.deepEqual(await contextKeys(store), ["input/input-a", "call", "turn-a/c/unknown", "input/input-b"]);
      const after = await recordsOf(store);
      assert.deepEqual(after.turns.slice(0, 1), before.turns);
      assert.deepEqual(after.inputs.slice(0, 1), before.inputs);
      await assertVerified(store);
    },
  },
  {
    id: "SPOOL-1e",
    title: "a release and the settlement of a dead holder replay the spool before they settle its turn",
    async run({ open }) {
      const store = await open();
      const turn = await callingTurn(store);
      await store.spool.keep(stepOf(turn, { entries: [results("result", "c")], end: { outcome: "answered" } }));
      assert.equal((await store.leases.release(turn.grant)).kind, "released");
      const ended = await store.turns.read(session, turn.turnId);
      assert.ok(ended?.state === "ended" && ended.outcome === "answered", `the turn is ${ended?.state}`);

      const second = await startTurn(store, "b");
      await store.spool.keep(stepOf(second, { entries: [says("said", "1")] }));
      const settled = await store.turns.settleForeign(second.grant);
      assert.ok(settled.kind === "settled" && settled.turn !== undefined, `answered ${settled.kind}`);
      const keys = ["input/input-a", "call", "result", "input/input-b", "said"];
      assert.deepEqual(await contextKeys(store), keys);
      await assertVerified(store);
    },
  },
  {
    id: "SPOOL-1f",
    title: "a step of a turn that this store does not know waits, whatever is granted",
    async run({ open }) {
      const store = await open();
      const turn = await startTurn(store, "a");
      await store.spool.keep(stepOf({ ...turn, turnId: "turn-elsewhere" }, { entries: [says("strange", "?")] }));
      await nextTurn(store, turn);
      assert.deepEqual(await contextKeys(store), ["input/input-a", "input/input-b"]);
      assert.equal(await stepCount(store), 1);
    },
  },
  {
    id: "SPOOL-1g",
    title: "a session that is deleted takes its spool with it",
    async run({ open }) {
      const store = await open();
      const turn = await callingTurn(store);
      await store.leases.release(turn.grant);
      await store.spool.keep(stepOf(turn, { entries: [says("said", "1")] }));
      assert.equal((await store.sessions.delete(session)).kind, "deleted");
      assert.deepEqual(await store.spool.waiting(), []);
    },
  },
  {
    id: "SPOOL-1h",
    title: "other content under a known key and a result without its call are late, and refuse nobody the session",
    async run({ open }) {
      const store = await open();
      const turn = await callingTurn(store);
      const entries = [says("call", "other content"), results("stray", "nothing"), says("said", "1")];
      await store.spool.keep(stepOf(turn, { entries }));
      const next = await nextTurn(store, turn);
      assert.deepEqual(await lateKeys(store), ["call/2", "stray"]);
      assert.deepEqual(await contextKeys(store), [
        "input/input-a",
        "call",
        "said",
        "turn-a/c/unknown",
        "input/input-b",
      ]);
      await store.spool.keep(stepOf(turn, { entries }));
      await startTurn(store, "c", { reclaim: next.grant });
      assert.deepEqual(await lateKeys(store), ["call/2", "stray"]);
      await assertVerified(store);
    },
  },
  {
    id: "SPOOL-1i",
    title: "nothing is replayed by a call that is refused, nor by the grant of another session",
    async run({ open }) {
      const store = await open();
      const turn = await callingTurn(store);
      await store.spool.keep(stepOf(turn, { entries: [says("said", "1")] }));
      await offered(store, "b", "input-b");
      await changesNothing(store, async () => {
        const answer = await store.leases.acquire({
          sessionId: session,
          holder: holderOf("b"),
          ttlMs: 1000,
          begin: beginOf("b"),
        });
        assert.equal(answer.kind, "held");
        assert.equal((await store.leases.release({ ...turn.grant, fencingToken: 99 })).kind, "stale");
        assert.equal((await store.turns.settleForeign({ ...turn.grant, fencingToken: 99 })).kind, "changed");
      });
      await take(store, "other", { sessionId: "session-2" });
      assert.equal(await stepCount(store), 1);
    },
  },
  {
    id: "SPOOL-1j",
    title: "a step settles what its turn took, and no input that waits for another",
    async run({ open }) {
      const store = await open();
      const turn = await callingTurn(store);
      await offered(store, "c", "input-c");
      const settledInputs = ["input-a", "input-c"].map((inputId) => ({ inputId, end: "answered" }) as const);
      await store.spool.keep(stepOf(turn, { settledInputs }));
      await take(store, "b", { reclaim: turn.grant, begin: beginOf("c") });
      const own = await inputOf(store, "input-a");
      assert.equal(own.state === "settled" && own.end, "answered");
      assert.equal((await inputOf(store, "input-c")).state, "taken");
      await assertVerified(store);
    },
  },
  {
    id: "SPOOL-1k",
    title: "what a turn keeps that was suspended, unknown to its process, is late, and takes no key from the turn",
    async run({ open }) {
      const store = await open();
      const turn = await callingTurn(store);
      const { grant, turnId } = turn;
      await store.turns.suspend({ grant, turnId, callIds: ["c"] });
      const stop = draft("result", { role: "tool", callId: "c", name: "shell", status: "interrupted", output: "no" });
      const step = stepOf(turn, { entries: [stop], end: { outcome: "failed", reason: "STORE_IO" } });
      await store.spool.keep(step);
      await store.spool.keep(step);
      await store.turns.answer({ sessionId: session, callId: "c", decision: "allow", by: "somebody" });
      const resumed = await take(store, "b", { begin: { ...beginOf("b"), resumes: true } });
      assert.equal(resumed.granted.resumed?.turnId, turnId);
      assert.deepEqual(await lateKeys(store), ["result/late"]);
      const goesOn = { grant: resumed.grant, turnId };
      assert.equal((await store.transcript.append({ ...goesOn, entries: [results("result", "c")] })).kind, "committed");
      assert.equal((await store.turns.end({ ...goesOn, outcome: "answered", release: true })).kind, "ended");
      await assertVerified(store);
    },
  },
];
