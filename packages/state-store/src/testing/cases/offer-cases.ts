/** What an offer stores, for whom, and when it is the same offer again. */
import assert from "node:assert/strict";
import { digestOf } from "../../json.ts";
import type { OnBusy } from "../../inbox.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertGrew,
  ask,
  beginOf,
  changesNothing,
  inputOf,
  offered,
  offerOf,
  recordsOf,
  runnerOf,
  session,
  take,
} from "../scene.ts";

const policies: readonly OnBusy[] = ["wait", "reject", "queue", "steer", "interrupt"];

export const offerCases: readonly ConformanceCase[] = [
  {
    id: "INBOX-2",
    title: "the same id with the same text is accepted once, and answered as it stands: pending, taken, settled",
    async run({ open, reopen }) {
      const first = await offered(await open(), "a", "input-a");
      const store = await reopen();
      const offerAgain = () => store.inbox.offer(offerOf("a", "input-a"));
      const pending = await changesNothing(store, offerAgain);
      assert.deepEqual(pending, { kind: "known", input: first });
      const { grant } = await take(store, "a", { begin: beginOf("a") });
      const taken = await changesNothing(store, offerAgain);
      assert.equal(taken.kind === "known" && taken.input.state, "taken");
      await store.turns.end({ grant, turnId: "turn-a", outcome: "failed", reason: "MODEL_ERROR", release: true });
      const settled = await changesNothing(store, offerAgain);
      assert.deepEqual(settled, { kind: "known", input: await inputOf(store, "input-a") });
      assert.equal((await recordsOf(store)).inputs.length, 1);
    },
  },
  {
    id: "INBOX-2b",
    title: "the same id with other text is a conflict at every stage: nothing is stored, the first input is untouched",
    async run({ open }) {
      const store = await open();
      const conflicts = async (inputId: string): Promise<void> => {
        const offer = await changesNothing(store, () => store.inbox.offer(offerOf("b", inputId, { text: "other" })));
        assert.deepEqual(offer, { kind: "conflict", input: await inputOf(store, inputId) });
      };
      await offered(store, "a", "input-a");
      await conflicts("input-a");
      const { grant } = await take(store, "a", { begin: beginOf("a") });
      await conflicts("input-a");
      await store.turns.end({ grant, turnId: "turn-a", outcome: "answered", release: true });
      await conflicts("input-a");
      await offered(store, "a", "input-b");
      await store.inbox.withdraw(session, "input-b", "cancelled");
      await conflicts("input-b");
    },
  },
  {
    id: "INBOX-2c",
    title: "of offers of one id that race exactly one is accepted",
    async run({ open }) {
      const store = await open();
      const offers = await Promise.all(["a", "b", "c"].map((name) => store.inbox.offer(offerOf(name, "input-1"))));
      assert.deepEqual(offers.map((offer) => offer.kind).toSorted(), ["accepted", "known", "known"]);
      assert.equal((await store.inbox.pending(session)).length, 1);
    },
  },
  {
    id: "INBOX-2d",
    title: "whoever offers an orphan again is its runner from then on; an input with a runner keeps it",
    async run({ open }) {
      const store = await open();
      await offered(store, "a", "input-1");
      await store.inbox.abandon(session, "runner-a");
      const adopted = await store.inbox.offer(offerOf("b", "input-1"));
      assert.equal(adopted.kind, "known");
      assert.deepEqual(adopted.input.state === "pending" && adopted.input.runner, runnerOf("b"));
      assert.deepEqual(await inputOf(store, "input-1"), adopted.input);
      const kept = await changesNothing(store, () => store.inbox.offer(offerOf("c", "input-1")));
      assert.deepEqual(kept.kind === "known" && kept.input, adopted.input);
    },
  },
  {
    id: "INBOX-2e",
    title: "a repeat that does not wait leaves an orphan one on a busy session: the offerer leaves",
    async run({ open }) {
      for (const onBusy of ["queue", "steer", "reject"] as const) {
        const store = await open();
        await take(store, "holder");
        const { runner } = await offered(store, "a", "input-1", { onBusy: onBusy === "reject" ? "queue" : onBusy });
        assert.equal(runner, undefined);
        const again = await changesNothing(store, () => store.inbox.offer(offerOf("a", "input-1", { onBusy })));
        assert.equal(again.kind, "known");
      }
    },
  },
  {
    id: "INBOX-2f",
    title: "an id that was cancelled or expired without a turn may be offered again, and queues behind the others",
    async run({ open }) {
      for (const end of ["cancelled", "expired"] as const) {
        const store = await open();
        const first = await offered(store, "a", "input-a");
        await offered(store, "b", "input-b");
        assert.deepEqual(await store.inbox.withdraw(session, "input-a", end), { kind: "withdrawn" });
        const again = await offered(store, "a", "input-a");
        assertGrew("place in the queue", first.seq, again.seq);
        const pending = await store.inbox.pending(session);
        assert.deepEqual(
          pending.map((input) => input.inputId),
          ["input-b", "input-a"],
        );
        assert.equal((await recordsOf(store)).inputs.length, 2);
      }
    },
  },
  {
    id: "INBOX-OFFER",
    title: "an offer makes the session and answers the stored input; without a holder it names none",
    async run({ open, reopen }) {
      const store = await open();
      assert.equal(await store.sessions.read(session), undefined);
      const offer = await store.inbox.offer(offerOf("a", "input-1"));
      assert.equal(offer.kind, "accepted");
      assert.equal(offer.lease, undefined);
      const { seq, offeredAtMs, ...facts } = offer.input;
      assert.ok(Number.isSafeInteger(seq) && Number.isFinite(offeredAtMs), "the input has no place or no time");
      assert.deepEqual(facts, {
        sessionId: session,
        inputId: "input-1",
        text: "text of input-1",
        digest: digestOf("text of input-1"),
        delivery: "turn",
        state: "pending",
        runner: runnerOf("a"),
      });
      const again = await reopen();
      assert.deepEqual(await inputOf(again, "input-1"), offer.input);
      assert.deepEqual(await again.inbox.pending(session), [offer.input]);
      const { revision, entryCount } = (await again.sessions.read(session)) ?? assert.fail("no session");
      assert.deepEqual({ revision, entryCount }, { revision: 0, entryCount: 0 });
    },
  },
  {
    id: "INBOX-OFFER-b",
    title: "an offer sees the holder of its moment, or none: then the offerer runs it",
    async run({ open }) {
      const store = await open();
      const { grant } = await take(store, "holder");
      const busy = await store.inbox.offer(offerOf("a", "input-1"));
      assert.equal(busy.kind === "accepted" && busy.lease?.holder.holderId, grant.holderId);
      const known = await store.inbox.offer(offerOf("a", "input-1"));
      assert.equal(known.kind === "known" && known.lease?.fencingToken, grant.fencingToken);
      await store.leases.release(grant);
      const free = await store.inbox.offer(offerOf("a", "input-2"));
      assert.equal(free.kind === "accepted" && free.lease, undefined);
    },
  },
  {
    id: "INBOX-ONBUSY",
    title: "on a busy session `queue` and `steer` leave an orphan; `wait` and `interrupt` name the offerer as runner",
    async run({ open }) {
      const store = await open();
      await take(store, "holder");
      const stored = new Map(
        await Promise.all(
          policies
            .filter((onBusy) => onBusy !== "reject")
            .map(async (onBusy) => [onBusy, await offered(store, "a", `input-${onBusy}`, { onBusy })] as const),
        ),
      );
      for (const onBusy of ["queue", "steer"] as const) assert.equal(stored.get(onBusy)?.runner, undefined, onBusy);
      for (const onBusy of ["wait", "interrupt"] as const) assert.deepEqual(stored.get(onBusy)?.runner, runnerOf("a"));
      assert.deepEqual(
        [...stored].map(([onBusy, input]) => [onBusy, input.delivery]),
        [
          ["wait", "turn"],
          ["queue", "turn"],
          ["steer", "steer"],
          ["interrupt", "turn"],
        ],
      );
    },
  },
  {
    id: "INBOX-ONBUSY-b",
    title: "on a free session every policy stores the input and names the offerer as its runner",
    async run({ open }) {
      const store = await open();
      for (const onBusy of policies) {
        const sessionId = `session-${onBusy}`;
        const input = await offered(store, "a", "input-1", { sessionId, onBusy });
        assert.deepEqual(input.runner, runnerOf("a"), onBusy);
      }
    },
  },
  {
    id: "INBOX-ONBUSY-c",
    title: "a live waiter makes a free session busy: `queue` leaves an orphan, `reject` is told the waiter",
    async run({ open, host }) {
      const store = await open();
      const head = await offered(store, "a", "input-a");
      assert.equal((await offered(store, "b", "input-b", { onBusy: "queue" })).runner, undefined);
      const rejected = await changesNothing(store, () =>
        store.inbox.offer(offerOf("c", "input-c", { onBusy: "reject" })),
      );
      assert.deepEqual(rejected, { kind: "busy", head });
      // Woken by a contender, it sleeps through its claim period: nobody is live any more.
      assert.equal((await ask(store, "d")).kind, "behind");
      await host.advance(501);
      assert.deepEqual((await offered(store, "c", "input-c", { onBusy: "reject" })).runner, runnerOf("c"));
    },
  },
  {
    id: "INBOX-REJECT",
    title: "`reject` on a held session stores nothing, and the id stays free for other content",
    async run({ open, reopen }) {
      const store = await open();
      const { grant } = await take(store, "holder");
      const offer = await changesNothing(store, () => store.inbox.offer(offerOf("a", "input-1", { onBusy: "reject" })));
      assert.equal(offer.kind, "busy");
      assert.equal(offer.lease?.holder.holderId, grant.holderId);
      const again = await reopen();
      assert.equal(await again.inbox.read(session, "input-1"), undefined);
      assert.deepEqual(await again.inbox.pending(session), []);
      await again.leases.release(grant);
      await offered(again, "a", "input-1", { onBusy: "reject", text: "other text" });
    },
  },
  {
    id: "INBOX-FULL",
    title:
      "behind `queueLengthMax` inputs nothing is stored, of offers that come at once too; what is known stays known",
    async run({ open }) {
      const store = await open();
      await take(store, "holder");
      const bound = { onBusy: "queue", queueLengthMax: 2 } as const;
      const names = ["1", "2", "3", "4", "5"];
      const offers = await Promise.all(names.map((name) => store.inbox.offer(offerOf("a", name, bound))));
      assert.deepEqual(offers.map(({ kind }) => kind).toSorted(), ["accepted", "accepted", "full", "full", "full"]);
      assert.equal((await store.inbox.pending(session)).length, 2);
      for (const onBusy of policies.filter((one) => one !== "reject")) {
        const offer = () => store.inbox.offer(offerOf("b", "late", { ...bound, onBusy }));
        assert.deepEqual(await changesNothing(store, offer), { kind: "full", waitingCount: 2 });
      }
      const [first] = await store.inbox.pending(session);
      assert.ok(first);
      assert.equal((await store.inbox.offer(offerOf("a", first.inputId, bound))).kind, "known");
      await store.inbox.withdraw(session, first.inputId, "cancelled");
      await offered(store, "b", "late", bound);
      await offered(store, "b", "unbounded", { onBusy: "queue" });
    },
  },
  {
    id: "INBOX-DEAD",
    title: "a grant that the offerer proved dead does not count as busy; any other standing grant does",
    async run({ open }) {
      const store = await open();
      const dead = await take(store, "dead");
      const reject = { onBusy: "reject", deadGrant: dead.grant } as const;
      assert.deepEqual((await offered(store, "a", "input-a", reject)).runner, runnerOf("a"));
      await store.inbox.withdraw(session, "input-a", "cancelled");
      await take(store, "live", { reclaim: dead.grant });
      const busy = await changesNothing(store, () => store.inbox.offer(offerOf("a", "input-b", reject)));
      assert.equal(busy.kind, "busy");
    },
  },
  {
    id: "INBOX-DEAD-b",
    title: "a lease of another boot is busy, for nobody here can say that it lapsed; proved dead it is not",
    needs: "boot-clock",
    async run({ open, reopen, host }) {
      const { grant } = await take(await open(), "holder", { ttlMs: 5_000 });
      host.reboot();
      const store = await reopen();
      await host.advance(10_000_000);
      const reject = { onBusy: "reject" } as const;
      const busy = await changesNothing(store, () => store.inbox.offer(offerOf("a", "input-a", reject)));
      assert.equal(busy.kind === "busy" && busy.lease?.standing, "other-boot");
      await offered(store, "a", "input-a", { ...reject, deadGrant: grant });
    },
  },
  {
    id: "INBOX-LAPSED",
    title: "a lapsed lease is not busy: nobody may be left to run what an offerer leaves behind",
    async run({ open, host }) {
      const store = await open();
      await take(store, "holder", { ttlMs: 5_000 });
      await host.advance(5_000);
      assert.deepEqual((await offered(store, "a", "input-a", { onBusy: "queue" })).runner, runnerOf("a"));
    },
  },
];
