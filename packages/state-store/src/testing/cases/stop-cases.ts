/** Requests to stop a turn. */
import assert from "node:assert/strict";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  beginOf,
  changesNothing,
  finishes,
  inputOf,
  offered,
  recordsOf,
  runningOf,
  session,
  startTurn,
  take,
} from "../scene.ts";

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
    id: "TURN-STOP-e",
    title: "an end keeps what stopped the turn, who asked and when, in the spool and in an import too; an answer none",
    async run({ open, reopen }) {
      const store = await open();
      const a = await startTurn(store, "a");
      await store.turns.requestStop(session, softStop);
      const stop = { ...hardStop, atMs: 4_711 };
      const end = { outcome: "interrupted", reason: "user-stop", stop } as const;
      await store.turns.end({ grant: a.grant, turnId: a.turnId, ...end, release: true });
      const b = await startTurn(store, "b");
      await store.spool.keep({ grant: b.grant, turnId: b.turnId, entries: [], end });
      // Its end is absorbed by the next grant.
      const c = await startTurn(store, "c", { reclaim: b.grant });
      await store.turns.requestStop(session, softStop);
      await finishes(store, "c", c.grant);
      const again = await reopen();
      const { turns } = await recordsOf(again);
      assert.deepEqual(
        turns.map((turn) => turn.stop),
        [stop, stop, undefined],
      );
      assert.equal(await again.turns.stopRequest(session, a.turnId), undefined, "an ended turn is not asked to stop");
      const records = await recordsOf(again);
      assert.equal((await again.sessions.delete(session)).kind, "deleted");
      assert.equal((await again.sessions.importSession(records)).kind, "imported");
      assert.deepEqual((await recordsOf(again)).turns, turns);
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
