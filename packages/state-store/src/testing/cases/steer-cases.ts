/** Inputs that join the turn that runs. */
import assert from "node:assert/strict";
import type { ConformanceCase } from "../conformance-case.ts";
import { ask, assertVerified, changesNothing, inputOf, offered, refuses, session, startTurn, take } from "../scene.ts";

export const steerCases: readonly ConformanceCase[] = [
  {
    id: "INBOX-STEER",
    title: "a turn takes the pending steers, oldest first, each once, and no input that wants its own turn",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await offered(store, "b", "steer-2", { onBusy: "steer" });
      await offered(store, "b", "input-b", { onBusy: "queue" });
      await offered(store, "b", "steer-1", { onBusy: "steer" });
      await offered(store, "b", "steer-3", { onBusy: "steer" });
      await store.inbox.withdraw(session, "steer-3", "cancelled");
      const taken = await store.inbox.takeSteers(grant, turnId);
      assert.equal(taken.kind, "taken");
      assert.deepEqual(
        taken.inputs.map((input) => [input.inputId, input.state, input.turnId]),
        [
          ["steer-2", "taken", turnId],
          ["steer-1", "taken", turnId],
        ],
      );
      const again = await reopen();
      assert.deepEqual(await inputOf(again, "steer-2"), taken.inputs[0]);
      assert.deepEqual(await again.inbox.takeSteers(grant, turnId), { kind: "taken", inputs: [] });
      const { entries } = await again.transcript.load(session, { turnId });
      assert.deepEqual(
        entries.map((entry) => entry.body.role === "user" && entry.body.inputId),
        ["input-a", "steer-2", "steer-1"],
      );
      assert.equal((await inputOf(again, "input-b")).state, "pending");
      await assertVerified(again);
    },
  },
  {
    id: "INBOX-STEER-b",
    title: "a replaced grant takes no steer, and no steer joins a turn that does not run",
    async run({ open }) {
      const store = await open();
      const a = await startTurn(store, "a");
      const b = await take(store, "b", { reclaim: a.grant });
      await offered(store, "c", "steer-1", { onBusy: "steer" });
      const answer = await changesNothing(store, () => store.inbox.takeSteers(a.grant, a.turnId));
      assert.deepEqual(answer, { kind: "stale-token" });
      await refuses(store, "STORE_CONTRACT", () => store.inbox.takeSteers(b.grant, "turn-b"));
      await refuses(store, "STORE_CONTRACT", () => store.inbox.takeSteers(b.grant, a.turnId));
    },
  },
  {
    id: "INBOX-STEER-c",
    title: "a steer that lands as the turn ends is not stranded: the one who frees the session sees it, and may run it",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      assert.deepEqual(await store.inbox.takeSteers(grant, turnId), { kind: "taken", inputs: [] });
      await offered(store, "b", "steer-1", { onBusy: "steer" });
      const end = await store.turns.end({ grant, turnId, outcome: "answered", release: true });
      assert.deepEqual([end.kind === "ended" && end.pendingCount, end.kind === "ended" && end.head], [1, undefined]);
      const next = await ask(store, "a#2");
      assert.equal(next.kind === "granted" && next.input?.inputId, "steer-1");
    },
  },
];
