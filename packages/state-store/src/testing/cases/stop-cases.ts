/** Requests to stop a turn. */
import assert from "node:assert/strict";
import type { ConformanceCase } from "../conformance-case.ts";
import { beginOf, changesNothing, finishes, inputOf, offered, runningOf, session, startTurn, take } from "../scene.ts";

const softStop = { hard: false, reason: "user-message", by: "cli pid 1" } as const;
const hardStop = { hard: true, reason: "user-stop", by: "cli pid 2" } as const;

export const stopCases: readonly ConformanceCase[] = [
  {
    id: "TURN-STOP",
    title: "a stop request finds the running turn and is written on that turn alone; pending inputs stay",
    async run({ open, reopen }) {
      const store = await open();
      assert.deepEqual(await store.turns.requestStop(session, softStop), { kind: "nothing-running" });
      const { grant, turnId } = await startTurn(store, "a");
      await offered(store, "b", "input-b");
      assert.equal(await store.turns.stopRequest(session, turnId), undefined);
      const asked = await store.turns.requestStop(session, softStop);
      assert.equal(asked.kind, "requested");
      assert.equal(asked.turn.turnId, turnId);
      const again = await reopen();
      const { atMs, ...stop } = (await again.turns.stopRequest(session, turnId)) ?? assert.fail("no stop request");
      assert.ok(Number.isFinite(atMs), "the request has no time");
      assert.deepEqual(stop, softStop);
      assert.deepEqual((await runningOf(again))?.stop, asked.turn.stop);
      assert.equal((await inputOf(again, "input-b")).state, "pending");
      assert.equal(await again.turns.stopRequest(session, "turn-b"), undefined);
      assert.equal(await again.turns.stopRequest("session-2", turnId), undefined);
      await finishes(again, "a", grant);
      assert.deepEqual(await again.turns.requestStop(session, softStop), { kind: "nothing-running" });
      await take(again, "b", { begin: beginOf("b") });
      assert.equal(await again.turns.stopRequest(session, "turn-b"), undefined);
    },
  },
  {
    id: "TURN-STOP-b",
    title: "a later stop request may harden the first, never soften it",
    async run({ open, host }) {
      const store = await open();
      const { turnId } = await startTurn(store, "a");
      await store.turns.requestStop(session, softStop);
      await host.advance(1_000);
      const hardened = await store.turns.requestStop(session, hardStop);
      assert.deepEqual(hardened.kind === "requested" && hardened.turn.stop?.hard, true);
      const stop = await store.turns.stopRequest(session, turnId);
      assert.deepEqual([stop?.hard, stop?.reason, stop?.by], [true, hardStop.reason, hardStop.by]);
      await host.advance(1_000);
      const softer = await changesNothing(store, () => store.turns.requestStop(session, softStop));
      assert.deepEqual(softer.kind === "requested" && softer.turn.stop, stop);
    },
  },
  {
    id: "TURN-STOP-d",
    title: "a stop request that names a grant stops that grant's turn and leaves every later one alone",
    async run({ open }) {
      const store = await open();
      const a = await startTurn(store, "a");
      await finishes(store, "a", a.grant);
      await offered(store, "b", "input-b");
      const { granted } = await take(store, "b", { begin: beginOf("b") });
      const late = await changesNothing(store, () => store.turns.requestStop(session, softStop, a.grant.fencingToken));
      assert.deepEqual(late, { kind: "nothing-running" });
      const meant = await store.turns.requestStop(session, softStop, granted.fencingToken);
      assert.equal(meant.kind, "requested");
    },
  },
  {
    id: "TURN-STOP-c",
    title: "a held session without a turn has nothing to stop",
    async run({ open }) {
      const store = await open();
      await take(store, "a");
      const answer = await changesNothing(store, () => store.turns.requestStop(session, hardStop));
      assert.deepEqual(answer, { kind: "nothing-running" });
    },
  },
];
