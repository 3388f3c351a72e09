/** A child's end is told to its parent once, in the transaction of that end, whoever writes it (rule 7.20). */
import assert from "node:assert/strict";
import type { Grant } from "../../identity.ts";
import type { PendingInput } from "../../inbox.ts";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  ask,
  assertVerified,
  beginOf,
  calls,
  changesNothing,
  draft,
  finishes,
  inputOf,
  offered,
  offerOf,
  recordsOf,
  rejectsWith,
  results,
  says,
  session,
  startTurn,
  take,
  ttlMs,
} from "../scene.ts";

const child = "session-2";
const parent = { sessionId: session, turnId: "turn-a", callId: "c" } as const;

interface Delegating {
  readonly grant: Grant;
  readonly turnId: string;
}

/** `a` runs a turn whose call `c` has a child that waits for its turn. */
async function delegating(store: StateStore): Promise<Delegating> {
  const turn = await startTurn(store, "a");
  await store.transcript.append({ ...turnOf(turn), entries: [calls("call", "c")] });
  await offered(store, "a", "task", { sessionId: child, parent });
  return turnOf(turn);
}

const turnOf = ({ grant, turnId }: Delegating): Delegating => ({ grant, turnId });

/** The child's turn runs, and has said `found it`. */
async function childRuns(store: StateStore, ttlMs = 60_000): Promise<Delegating> {
  const { grant } = await take(store, "a", { sessionId: child, begin: { ...beginOf("a"), turnId: "turn-c" }, ttlMs });
  const turn = { grant, turnId: "turn-c" };
  await store.transcript.append({ ...turn, entries: [says("child-said", "found it")] });
  return turn;
}

async function childEnds(store: StateStore): Promise<void> {
  const end = await store.turns.end({ ...(await childRuns(store)), outcome: "answered", release: true });
  assert.equal(end.kind, "ended");
}

async function onlyNotice(store: StateStore): Promise<PendingInput> {
  const pending = await store.inbox.pending(session);
  const [notice] = pending;
  assert.ok(notice && pending.length === 1, `the parent was told ${pending.length} times`);
  return notice;
}

async function isTold(store: StateStore, outcome: string, reason?: string): Promise<PendingInput> {
  const notice = await onlyNotice(store);
  assert.deepEqual([notice.child?.outcome, notice.child?.reason], [outcome, reason]);
  await assertVerified(store);
  return notice;
}

export const childCases: readonly ConformanceCase[] = [
  {
    id: "CHILD-NOTICE",
    title: "a child's end and its parent's notice are one transaction, and there is one notice however often it ends",
    async run({ open, reopen }) {
      const first = await open();
      await delegating(first);
      assert.deepEqual((await first.sessions.read(child))?.parent, parent);
      assert.deepEqual(await first.inbox.pending(session), []);
      const turn = await childRuns(first);
      const end = { ...turn, outcome: "answered", release: true } as const;
      await first.turns.end(end);
      const store = await reopen();
      const notice = await isTold(store, "answered");
      assert.equal(notice.inputId, `child/${child}/turn-c`);
      assert.deepEqual(notice.child, { sessionId: child, turnId: "turn-c", callId: "c", outcome: "answered" });
      assert.match(notice.text, /found it$/);
      assert.equal(notice.runner, undefined);
      await store.turns.end(end);
      // What the child's session does later is no end of what the call had asked for.
      await offered(store, "b", "more", { sessionId: child });
      const { grant } = await take(store, "b", { sessionId: child, begin: beginOf("b") });
      await store.turns.end({ grant, turnId: "turn-b", outcome: "failed", release: true });
      assert.deepEqual(await onlyNotice(store), notice);
    },
  },
  {
    id: "CHILD-NOTICE-b",
    title:
      "whoever ends the child's turn tells the parent: its reaper, its successor, a release, the spool, a deletion",
    async run({ open, host }) {
      const ways: readonly (readonly [
        string,
        string | undefined,
        (store: StateStore, turn: Delegating) => Promise<unknown>,
      ])[] = [
        ["interrupted", "crashed", (store, { grant }) => store.turns.settleForeign(grant)],
        ["interrupted", "crashed", (store, { grant }) => store.leases.release(grant)],
        [
          "interrupted",
          "crashed",
          async (store, { grant }) => {
            await offered(store, "b", "more", { sessionId: child });
            await take(store, "b", { sessionId: child, begin: beginOf("b"), reclaim: grant });
          },
        ],
        [
          "failed",
          "STORE_IO",
          async (store, turn) => {
            await store.spool.keep({ ...turn, entries: [], end: { outcome: "failed", reason: "STORE_IO" } });
            await store.leases.release(turn.grant);
          },
        ],
        [
          "interrupted",
          "crashed",
          async (store) => {
            await host.advance(2_000);
            assert.deepEqual(await store.sessions.delete(child), { kind: "deleted" });
          },
        ],
      ];
      for (const [outcome, reason, ends] of ways) {
        const store = await open();
        await delegating(store);
        const turn = await childRuns(store, 1_000);
        await ends(store, turn);
        const notice = await isTold(store, outcome, reason);
        assert.match(notice.text, /found it$/);
      }
    },
  },
  {
    id: "CHILD-NOTICE-c",
    title: "the step that has the call's result settles the notice, and then nothing else delivers it",
    async run({ open, reopen }) {
      const first = await open();
      const turn = await delegating(first);
      await childEnds(first);
      const { inputId } = await onlyNotice(first);
      const step = {
        ...turn,
        entries: [results("result", "c")],
        settledInputs: [{ inputId, end: "answered" } as const],
      };
      await first.transcript.append(step);
      const store = await reopen();
      await store.transcript.append(step);
      const input = await inputOf(store, inputId);
      assert.deepEqual(input.state === "settled" && [input.end, input.turnId], ["answered", turn.turnId]);
      assert.deepEqual(await store.inbox.takeSteers(turn.grant, turn.turnId), { kind: "taken", inputs: [] });
      const said = (await recordsOf(store)).entries.filter(({ body }) => body.role === "user" && body.child);
      assert.deepEqual(said, []);
      await assertVerified(store);
      const end = await finishes(store, "a", turn.grant);
      assert.equal(end.pendingCount, 0);
    },
  },
  {
    id: "CHILD-NOTICE-d",
    title: "a parent that died has the notice for its next turn, which it joins; it asks for no turn of its own",
    async run({ open, reopen }) {
      const first = await open();
      const turn = await delegating(first);
      await childEnds(first);
      const settled = await first.turns.settleForeign(turn.grant);
      assert.deepEqual(settled.kind === "settled" && [settled.pendingCount, settled.turn?.openCallIds], [0, ["c"]]);
      const store = await reopen();
      const notice = await isTold(store, "answered");
      assert.deepEqual(await changesNothing(store, () => ask(store, "b")), { kind: "nothing-to-run" });
      const b = await startTurn(store, "b");
      const taken = await store.inbox.takeSteers(b.grant, b.turnId);
      assert.deepEqual(taken.kind === "taken" && taken.inputs.map(({ inputId }) => inputId), [notice.inputId]);
      const last = (await store.transcript.load(session)).entries.at(-1);
      assert.deepEqual(last?.body, { role: "user", text: notice.text, inputId: notice.inputId, child });
      await assertVerified(store);
      await finishes(store, "b", b.grant);
      const input = await inputOf(store, notice.inputId);
      assert.deepEqual(input.state === "settled" && [input.end, input.turnId, input.child], [
        "answered",
        "turn-b",
        notice.child,
      ]);
    },
  },
  {
    id: "CHILD-NOTICE-e",
    title: "a child that never begins is told of too: withdrawn, deleted, or left by its parent's turn",
    async run({ open, reopen }) {
      const withdrawn = await open();
      await delegating(withdrawn);
      await withdrawn.inbox.withdraw(child, "task", "expired");
      assert.equal((await isTold(withdrawn, "expired")).inputId, `child/${child}`);

      const deleted = await open();
      await delegating(deleted);
      await deleted.sessions.delete(child);
      await isTold(deleted, "failed", "deleted");

      const left = await open();
      const { grant } = await delegating(left);
      assert.equal((await finishes(left, "a", grant)).pendingCount, 0);
      const store = await reopen();
      await isTold(store, "cancelled");
      const task = await store.inbox.read(child, "task");
      assert.equal(task?.state === "settled" && task.end, "cancelled");
      assert.deepEqual(await ask(store, "a", { sessionId: child }), { kind: "nothing-to-run" });
    },
  },
  {
    id: "CHILD-NOTICE-f",
    title: "a parent whose session or turn is gone is told nothing, and is not made anew",
    async run({ open }) {
      const store = await open();
      const { grant } = await delegating(store);
      const turn = await childRuns(store);
      await store.turns.settleForeign(grant);
      await store.sessions.delete(session);
      await store.turns.end({ ...turn, outcome: "answered", release: true });
      assert.equal(await store.sessions.read(session), undefined);

      const renamed = await open();
      await delegating(renamed);
      const another = { ...parent, turnId: "turn-of-elsewhere" };
      await offered(renamed, "a", "task", { sessionId: "session-3", parent: another });
      await renamed.sessions.delete("session-3");
      assert.deepEqual(await renamed.inbox.pending(session), []);
    },
  },
  {
    id: "CHILD-NOTICE-g",
    title: "a session is one call's child from its first moment on, or never, and an import tells nobody",
    async run({ open }) {
      const store = await open();
      await delegating(store);
      const offer = offerOf("a", "task", { sessionId: child, parent });
      assert.equal((await store.inbox.offer(offer)).kind, "known");
      await rejectsWith("STORE_CONTRACT", () => store.inbox.offer({ ...offer, parent: { ...parent, callId: "d" } }));
      await rejectsWith("STORE_CONTRACT", () =>
        store.inbox.offer(offerOf("a", "x", { parent: { ...parent, sessionId: child } })),
      );
      await offered(store, "b", "more", { sessionId: child, onBusy: "queue" });
      assert.deepEqual((await store.sessions.read(child))?.parent, parent);
      const records = await recordsOf(store, child);
      await store.sessions.delete(child);
      const notice = await isTold(store, "failed", "deleted");
      await store.sessions.importSession(records);
      assert.deepEqual((await store.sessions.read(child))?.parent, parent);
      await store.sessions.delete(child);
      assert.deepEqual(await onlyNotice(store), notice);
    },
  },
  {
    id: "CHILD-NOTICE-h",
    title: "a notice whose id somebody used is told under a numbered one, and a cut answer in pieces is told whole",
    async run({ open }) {
      const store = await open();
      await delegating(store);
      await offered(store, "b", `child/${child}/turn-c`, { onBusy: "queue" });
      const turn = await childRuns(store);
      const piece = (key: string, text: string, partial: boolean) =>
        draft(key, { role: "assistant", parts: [{ type: "text", text }], ...(partial ? { partial } : {}) });
      const entries = [piece("one", "half of an ", true), piece("two", "answer", false)];
      await store.turns.end({ ...turn, outcome: "answered", entries, release: true });
      const notice = (await store.inbox.pending(session)).find((input) => input.child);
      assert.equal(notice?.inputId, `child/${child}/turn-c/2`);
      assert.match(notice.text, /half of an answer$/);
    },
  },
  {
    id: "CHILD-NOTICE-i",
    title: "a session whose turn died is deleted with that turn, and so is the task of a child that never began",
    async run({ host, open, reopen }) {
      const first = await open();
      await delegating(first);
      await host.advance(ttlMs + 1);
      assert.deepEqual(await first.sessions.delete(session), { kind: "deleted" });
      const store = await reopen();
      assert.equal(await store.sessions.read(session), undefined);
      const task = await store.inbox.read(child, "task");
      assert.equal(task?.state === "settled" && task.end, "cancelled");
    },
  },
  {
    id: "CHILD-NOTICE-j",
    title: "a notice takes nobody's room in a queue of a greatest length",
    async run({ open }) {
      const store = await open();
      await delegating(store);
      await childEnds(store);
      await onlyNotice(store);
      const bound = { onBusy: "queue", queueLengthMax: 1 } as const;
      await offered(store, "b", "input-1", bound);
      assert.deepEqual(await store.inbox.offer(offerOf("b", "input-2", bound)), { kind: "full", waitingCount: 1 });
    },
  },
];
