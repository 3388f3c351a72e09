/** Who runs next: the waiter queue is the inbox, and a free session is given away in its order. */
import assert from "node:assert/strict";
import { claimPeriodMs } from "../../decisions.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  ask,
  changesNothing,
  finishes,
  holderOf,
  inputOf,
  isBehind,
  offered,
  recordsOf,
  runnerOf,
  runs,
  session,
  startTurn,
  take,
  ttlMs,
} from "../scene.ts";

export const queueCases: readonly ConformanceCase[] = [
  {
    id: "QUEUE-ORDER",
    title: "first come, first served: each turn takes the oldest input its runner may run, and names who is next",
    async run({ open, reopen }) {
      const store = await open();
      for (const name of ["a", "b", "c"]) await offered(store, name, `input-${name}`);
      const a = await runs(store, "a", "input-a");
      const afterA = await finishes(store, "a", a);
      assert.deepEqual([afterA.pendingCount, afterA.head?.inputId], [2, "input-b"]);
      const again = await reopen();
      await isBehind(again, "c", "input-b");
      const b = await runs(again, "b", "input-b");
      const afterB = await finishes(again, "b", b);
      assert.deepEqual([afterB.pendingCount, afterB.head?.inputId], [1, "input-c"]);
      await finishes(again, "c", await runs(again, "c", "input-c"));
    },
  },
  {
    id: "QUEUE-NEWCOMER",
    title: "a newcomer never takes a free session past a live waiter: not after a release, a lapse or a reclaim",
    async run({ open, host }) {
      for (const freed of ["released", "lapsed", "reclaimed"] as const) {
        const store = await open();
        const { grant } = await take(store, "holder", { ttlMs: 5_000 });
        await offered(store, "waiter", "input-1");
        await offered(store, "newcomer", "input-2");
        if (freed === "released") await store.leases.release(grant);
        if (freed === "lapsed") await host.advance(5_000);
        const reclaim = freed === "reclaimed" ? { reclaim: grant } : {};
        const answer = await changesNothing(store, () => ask(store, "newcomer", reclaim));
        assert.equal(answer.kind === "behind" && answer.head.inputId, "input-1", freed);
        const waiter = await ask(store, "waiter", reclaim);
        assert.equal(waiter.kind === "granted" && waiter.input?.inputId, "input-1", freed);
      }
    },
  },
  {
    id: "QUEUE-NEWCOMER-b",
    title: "a newcomer without an input, or without a turn to begin, is behind a live waiter too",
    async run({ open }) {
      const store = await open();
      await offered(store, "waiter", "input-1");
      const without = await changesNothing(store, () => ask(store, "newcomer"));
      assert.equal(without.kind, "behind");
      const bare = await changesNothing(store, () =>
        store.leases.acquire({ sessionId: session, holder: holderOf("bare"), ttlMs }),
      );
      assert.equal(bare.kind === "behind" && bare.head.inputId, "input-1");
    },
  },
  {
    id: "QUEUE-NEWCOMER-d",
    title: "who asks for no turn wakes the waiter too, and is granted when it slept through its claim period",
    async run({ open, host }) {
      const store = await open();
      await offered(store, "waiter", "input-1");
      const bare = () => store.leases.acquire({ sessionId: session, holder: holderOf("bare"), ttlMs });
      assert.equal((await bare()).kind, "behind");
      await host.advance(claimPeriodMs + 1);
      assert.equal((await bare()).kind, "granted");
      assert.equal((await inputOf(store, "input-1")).state, "pending");
    },
  },
  {
    id: "QUEUE-NEWCOMER-c",
    title: "an orphan holds up nobody: a newcomer without an input runs it",
    async run({ open }) {
      const store = await open();
      await offered(store, "gone", "input-1");
      await store.inbox.abandon(session, "runner-gone");
      const grant = await runs(store, "newcomer", "input-1");
      await finishes(store, "newcomer", grant);
    },
  },
  {
    id: "QUEUE-ORPHAN",
    title: "the waiter whose turn it is runs older orphans first, and stays next until its own input is reached",
    async run({ open }) {
      const store = await open();
      const holder = await startTurn(store, "holder");
      for (const inputId of ["orphan-1", "orphan-2"]) await offered(store, "gone", inputId, { onBusy: "queue" });
      await offered(store, "waiter", "own");
      await offered(store, "gone", "orphan-3", { onBusy: "queue" });
      const free = await finishes(store, "holder", holder.grant);
      assert.deepEqual([free.pendingCount, free.head?.inputId], [4, "own"]);
      await isBehind(store, "newcomer", "own");
      for (const [turn, inputId] of ["orphan-1", "orphan-2", "own"].entries()) {
        const name = `waiter#${turn}`;
        const { pendingCount } = await finishes(store, name, await runs(store, name, inputId));
        assert.equal(pendingCount, 3 - turn);
      }
      const next = await store.inbox.pending(session);
      assert.deepEqual(
        next.map((input) => input.inputId),
        ["orphan-3"],
      );
      await runs(store, "newcomer", "orphan-3");
    },
  },
  {
    id: "QUEUE-ORPHAN-b",
    title: "orphans without a live waiter name no head: whoever frees the session competes again",
    async run({ open }) {
      const store = await open();
      const { grant } = await startTurn(store, "a");
      await offered(store, "b", "orphan-1", { onBusy: "queue" });
      const free = await finishes(store, "a", grant);
      assert.deepEqual([free.pendingCount, free.head], [1, undefined]);
      const next = await finishes(store, "a#2", await runs(store, "a#2", "orphan-1"));
      assert.deepEqual([next.pendingCount, next.head], [0, undefined]);
    },
  },
  {
    id: "QUEUE-OWN",
    title: "an input with a runner is run by that runner alone",
    async run({ open, host }) {
      const store = await open();
      await offered(store, "a", "input-a");
      await isBehind(store, "b", "input-a");
      await host.advance(claimPeriodMs + 1);
      // The waiter sleeps, so the session is free; but its input is still its own.
      assert.deepEqual(await changesNothing(store, () => ask(store, "b")), { kind: "nothing-to-run" });
      await runs(store, "a", "input-a");
    },
  },
  {
    id: "QUEUE-SLEEPER",
    title: `a waiter that was woken may take ${claimPeriodMs} ms to claim; then it is passed over, keeps its input and runs it later`,
    async run({ open, reopen, host }) {
      const first = await open();
      const holder = await startTurn(first, "holder");
      await offered(first, "sleeper", "input-1");
      await offered(first, "next", "input-2");
      assert.equal((await finishes(first, "holder", holder.grant)).head?.inputId, "input-1");
      await host.advance(claimPeriodMs);
      const store = await reopen();
      await isBehind(store, "next", "input-1");
      await host.advance(1);
      const { grant } = await take(store, "next", { begin: { turnId: "turn-next", runnerId: "runner-next" } });
      assert.equal((await inputOf(store, "input-2")).state, "taken");
      assert.equal((await inputOf(store, "input-1")).state, "pending");
      // A new hand-over is a new wake-up: the sleeper has a whole claim period again.
      assert.equal((await finishes(store, "next", grant)).head?.inputId, "input-1");
      await host.advance(claimPeriodMs);
      await runs(store, "sleeper", "input-1");
    },
  },
  {
    id: "QUEUE-SLEEPER-b",
    title: "who asks first wakes a waiter that nobody woke, and asking again does not prolong its claim period",
    async run({ open, host }) {
      const store = await open();
      // The holder died without a release, so the waiter's claim period has not begun: else it would last for ever.
      await take(store, "holder", { ttlMs: 5_000 });
      await offered(store, "sleeper", "input-1");
      await offered(store, "next", "input-2");
      await host.advance(60_000);
      await isBehind(store, "next", "input-1");
      for (let polls = 0; polls < 2; polls++) {
        await host.advance(claimPeriodMs / 2);
        await isBehind(store, "next", "input-1");
      }
      await host.advance(1);
      await runs(store, "next", "input-2");
    },
  },
  {
    id: "QUEUE-SLEEPER-c",
    title: "a step of the wall clock neither ends nor prolongs a claim period",
    async run({ open, host }) {
      const store = await open();
      await offered(store, "sleeper", "input-1");
      await offered(store, "next", "input-2");
      await isBehind(store, "next", "input-1");
      host.jumpWall(3_600_000);
      await isBehind(store, "next", "input-1");
      host.jumpWall(-7_200_000);
      await host.advance(claimPeriodMs + 1);
      await runs(store, "next", "input-2");
    },
  },
  {
    id: "QUEUE-SLEEPER-d",
    title: "a wake-up of an earlier boot counts for nothing: the waiter is woken anew, once",
    needs: "boot-clock",
    async run({ open, reopen, host }) {
      const first = await open();
      await offered(first, "sleeper", "input-1");
      await offered(first, "next", "input-2");
      await isBehind(first, "next", "input-1");
      host.reboot();
      const store = await reopen();
      // So long that a period of the earlier boot, judged by this clock, would be over.
      await host.advance(10_000_000);
      await isBehind(store, "next", "input-1");
      await host.advance(claimPeriodMs);
      await isBehind(store, "next", "input-1");
      await host.advance(1);
      await runs(store, "next", "input-2");
    },
  },
  {
    id: "QUEUE-SLEEPER-e",
    title: "several sleepers in a row are passed over, and the first that is awake is next",
    async run({ open, host }) {
      const store = await open();
      for (const name of ["a", "b", "c"]) await offered(store, name, `input-${name}`);
      await isBehind(store, "c", "input-a");
      await host.advance(claimPeriodMs + 1);
      await isBehind(store, "c", "input-b");
      await host.advance(claimPeriodMs + 1);
      const grant = await runs(store, "c", "input-c");
      assert.equal((await finishes(store, "c", grant)).head?.inputId, "input-a");
    },
  },
  {
    id: "QUEUE-ABANDON",
    title: "what an abandoned runner was to run keeps its place, and the next waiter runs it first",
    async run({ open }) {
      const store = await open();
      const holder = await startTurn(store, "holder");
      await offered(store, "dead", "input-1");
      await offered(store, "next", "input-2");
      assert.equal((await finishes(store, "holder", holder.grant)).head?.inputId, "input-1");
      assert.equal(await store.inbox.abandon(session, "runner-dead"), 1);
      await finishes(store, "next", await runs(store, "next", "input-1"));
      await runs(store, "next#2", "input-2");
    },
  },
  {
    id: "QUEUE-WITHDRAW",
    title: "a waiter that withdrew its input holds up nobody",
    async run({ open }) {
      const store = await open();
      await offered(store, "a", "input-a");
      await offered(store, "b", "input-b");
      await store.inbox.withdraw(session, "input-a", "cancelled");
      await runs(store, "b", "input-b");
    },
  },
  {
    id: "QUEUE-NOTHING",
    title: "with nothing to run nothing is taken: no lease, no token, and a lapsed predecessor stands as it did",
    async run({ open, host }) {
      const store = await open();
      const a = await startTurn(store, "a", { ttlMs: 5_000 });
      await host.advance(5_000);
      assert.deepEqual(await changesNothing(store, () => ask(store, "b")), { kind: "nothing-to-run" });
      assert.equal((await store.leases.renew(a.grant, ttlMs)).kind, "renewed");
      const other = await ask(store, "c", { sessionId: "session-2" });
      assert.deepEqual(other, { kind: "nothing-to-run" });
      assert.equal(await store.leases.read("session-2"), undefined);
      assert.equal((await recordsOf(store)).fencingToken, a.grant.fencingToken);
    },
  },
  {
    id: "QUEUE-HANDOVER",
    title: "every way to free a session answers what waits and who is next: release, end, settlement",
    async run({ open }) {
      for (const way of ["release", "end", "settle"] as const) {
        const store = await open();
        const { grant, turnId } = await startTurn(store, "a");
        await offered(store, "b", "orphan", { onBusy: "queue" });
        await offered(store, "b", "input-b");
        const kept = await store.turns.end({ grant, turnId, outcome: "answered", release: way === "end" });
        assert.equal(kept.kind === "ended" && kept.pendingCount, 2);
        const freed =
          way === "end"
            ? kept
            : await (way === "release" ? store.leases.release(grant) : store.turns.settleForeign(grant));
        assert.ok(freed.kind === "released" || freed.kind === "ended" || freed.kind === "settled", freed.kind);
        assert.deepEqual([freed.pendingCount, freed.head?.inputId], [2, "input-b"], way);
        assert.equal(await store.leases.read(session), undefined);
        await isBehind(store, "c", "input-b");
      }
    },
  },
  {
    id: "QUEUE-WAITING",
    title: "sessions in which an input wants a turn are told, the one that has waited longest first, and no others",
    async run({ open, reopen }) {
      const store = await open();
      assert.deepEqual(await store.inbox.waitingSessions(10), []);
      for (const [sessionId, inputId] of [
        ["third", "early"],
        ["first", "one"],
        ["second", "two"],
        ["third", "late"],
        ["first", "three"],
      ] as const)
        await offered(store, "a", inputId, { sessionId });
      await store.inbox.withdraw("third", "early", "cancelled");
      const again = await reopen();
      assert.deepEqual(await again.inbox.waitingSessions(10), ["first", "second", "third"]);
      assert.deepEqual(await again.inbox.waitingSessions(2), ["first", "second"]);
      await again.inbox.abandon("second", runnerOf("a").runnerId);
      await startTurn(again, "b");
      assert.deepEqual(await again.inbox.waitingSessions(10), ["first", "second", "third"]);
      for (const inputId of ["one", "three"]) await again.inbox.withdraw("first", inputId, "expired");
      assert.deepEqual(await again.inbox.waitingSessions(10), ["second", "third"]);
    },
  },
];
