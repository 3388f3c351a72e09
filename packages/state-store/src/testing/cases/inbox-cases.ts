/** What the inbox keeps of an input, from offer to end. Cases of the queue stand in `queue-cases.ts`. */
import assert from "node:assert/strict";
import { digestOf } from "../../json.ts";
import type { OnBusy } from "../../inbox.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  ask,
  assertVerified,
  beginOf,
  changesNothing,
  inputOf,
  offered,
  offerOf,
  recordsOf,
  refuses,
  runnerOf,
  says,
  session,
  startTurn,
  take,
} from "../scene.ts";

const policies: readonly OnBusy[] = ["wait", "reject", "queue", "steer", "interrupt"];

export const inboxCases: readonly ConformanceCase[] = [
  {
    id: "INBOX-1",
    title: "an accepted input is pending, then taken by one turn, then settled, and each stage outlives a crash",
    async run({ open, reopen }) {
      await offered(await open(), "a", "input-1");
      const offeredTo = await reopen();
      assert.equal((await inputOf(offeredTo, "input-1")).state, "pending");
      const { grant } = await take(offeredTo, "a", { begin: beginOf("a") });
      const takenBy = await reopen();
      const taken = await inputOf(takenBy, "input-1");
      assert.equal(taken.state === "taken" && taken.turnId, "turn-a");
      await takenBy.turns.end({ grant, turnId: "turn-a", outcome: "answered", release: true });
      const store = await reopen();
      const settled = await inputOf(store, "input-1");
      assert.equal(settled.state, "settled");
      assert.deepEqual([settled.end, settled.turnId], ["answered", "turn-a"]);
      assert.deepEqual(await store.inbox.pending(session), []);
      await assertVerified(store);
    },
  },
  {
    id: "INBOX-1b",
    title: "a settled input keeps its end: nothing settles, takes or withdraws it again",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const settledInputs = [{ inputId: "input-a", end: "answered" }] as const;
      await store.transcript.append({ grant, turnId, entries: [says("said", "done")], settledInputs });
      const settled = await inputOf(store, "input-a");
      const other = [{ inputId: "input-a", end: "failed" }] as const;
      await refuses(store, "STORE_CONTRACT", () =>
        store.transcript.append({ grant, turnId, entries: [says("more", "no")], settledInputs: other }),
      );
      assert.deepEqual(await changesNothing(store, () => store.turns.begin(grant, turnId, ["input-a"])), {
        kind: "not-pending",
        inputId: "input-a",
      });
      assert.deepEqual(await changesNothing(store, () => store.inbox.withdraw(session, "input-a", "cancelled")), {
        kind: "settled",
        end: "answered",
        turnId,
      });
      await store.turns.end({ grant, turnId, outcome: "interrupted", reason: "user-stop", release: true });
      assert.deepEqual(await inputOf(store, "input-a"), settled);
    },
  },
  {
    id: "INBOX-1c",
    title: "a turn that ends gives its outcome to every input it still holds, and to no other",
    async run({ open }) {
      for (const outcome of ["answered", "interrupted", "failed"] as const) {
        const store = await open();
        const { grant, turnId } = await startTurn(store, "a");
        await offered(store, "b", "input-b", { onBusy: "queue" });
        await offered(store, "c", "input-c", { onBusy: "queue" });
        assert.equal((await store.turns.begin(grant, turnId, ["input-b"])).kind, "begun");
        await store.turns.end({ grant, turnId, outcome, release: true });
        for (const inputId of ["input-a", "input-b"]) {
          const input = await inputOf(store, inputId);
          assert.equal(input.state === "settled" && input.end, outcome);
        }
        assert.equal((await inputOf(store, "input-c")).state, "pending");
        await assertVerified(store);
      }
    },
  },
  {
    id: "INBOX-1d",
    title: "of a withdrawal and a turn that race for an input one gets it, and the other is told",
    async run({ open }) {
      const store = await open();
      await offered(store, "a", "input-1");
      const [withdrawal, grant] = await Promise.all([
        store.inbox.withdraw(session, "input-1", "cancelled"),
        ask(store, "a"),
      ]);
      const input = await inputOf(store, "input-1");
      if (withdrawal.kind === "withdrawn") {
        assert.equal(grant.kind, "nothing-to-run");
        assert.equal(input.state === "settled" && input.end, "cancelled");
      } else {
        assert.deepEqual(withdrawal, { kind: "taken", turnId: "turn-a" });
        assert.equal(grant.kind === "granted" && grant.input?.inputId, "input-1");
        assert.equal(input.state, "taken");
      }
    },
  },
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
    title: "a `queue` or `steer` repeated on a busy session leaves its orphan one: the offerer leaves",
    async run({ open }) {
      for (const onBusy of ["queue", "steer"] as const) {
        const store = await open();
        await take(store, "holder");
        const { runner } = await offered(store, "a", "input-1", { onBusy });
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
        assert.ok(again.seq > first.seq);
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
      assert.ok(Number.isSafeInteger(seq) && Number.isFinite(offeredAtMs));
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
    id: "INBOX-LAPSED",
    title: "a lapsed lease is not busy: nobody may be left to run what an offerer leaves behind",
    async run({ open, host }) {
      const store = await open();
      await take(store, "holder", { ttlMs: 5_000 });
      await host.advance(5_000);
      assert.deepEqual((await offered(store, "a", "input-a", { onBusy: "queue" })).runner, runnerOf("a"));
    },
  },
  {
    id: "INBOX-PENDING",
    title: "pending inputs are answered oldest first, those of this session only, and only while they are pending",
    async run({ open }) {
      const store = await open();
      for (const inputId of ["input-3", "input-1", "input-2"]) await offered(store, "a", inputId);
      await offered(store, "a", "input-9", { sessionId: "session-2" });
      await store.inbox.withdraw(session, "input-1", "expired");
      const pendingIds = async () => (await store.inbox.pending(session)).map((input) => input.inputId);
      assert.deepEqual(await pendingIds(), ["input-3", "input-2"]);
      await take(store, "a", { begin: beginOf("a") });
      assert.deepEqual(await pendingIds(), ["input-2"]);
      assert.deepEqual(await store.inbox.pending("session-3"), []);
      assert.equal(await store.inbox.read("session-3", "input-1"), undefined);
      assert.equal(await store.inbox.read(session, "input-9"), undefined);
    },
  },
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
  {
    id: "INBOX-WITHDRAW",
    title: "only a pending input is withdrawn; what a turn has, what has ended and what is unknown is told and left",
    async run({ open }) {
      const store = await open();
      await offered(store, "a", "input-1");
      await offered(store, "a", "input-2");
      const { grant } = await take(store, "a", { begin: beginOf("a") });
      const withdraw =
        (inputId: string, sessionId = session) =>
        () =>
          store.inbox.withdraw(sessionId, inputId, "cancelled");
      assert.deepEqual(await changesNothing(store, withdraw("input-1")), { kind: "taken", turnId: "turn-a" });
      assert.deepEqual(await store.inbox.withdraw(session, "input-2", "expired"), { kind: "withdrawn" });
      assert.deepEqual(await changesNothing(store, withdraw("input-2")), { kind: "settled", end: "expired" });
      assert.deepEqual(await changesNothing(store, withdraw("input-3")), { kind: "unknown" });
      assert.deepEqual(await changesNothing(store, withdraw("input-1", "session-2")), { kind: "unknown" });
      await store.turns.end({ grant, turnId: "turn-a", outcome: "interrupted", reason: "user-stop", release: true });
      const settled = { kind: "settled", end: "interrupted", turnId: "turn-a" };
      assert.deepEqual(await changesNothing(store, withdraw("input-1")), settled);
      const input = await inputOf(store, "input-2");
      assert.deepEqual([input.state, input.state === "settled" && input.turnId], ["settled", undefined]);
      await assertVerified(store);
    },
  },
  {
    id: "INBOX-ABANDON",
    title: "to abandon a runner makes orphans of its pending inputs in this session, in their places, and of no others",
    async run({ open }) {
      const store = await open();
      await offered(store, "a", "input-1");
      await offered(store, "b", "input-2");
      await offered(store, "a", "input-3");
      await offered(store, "a", "input-9", { sessionId: "session-2" });
      const before = await store.inbox.pending(session);
      assert.equal(await store.inbox.abandon(session, "runner-a"), 2);
      const after = await store.inbox.pending(session);
      assert.deepEqual(
        after.map((input) => [input.inputId, input.seq, input.runner?.runnerId]),
        before.map((input) => [input.inputId, input.seq, input.inputId === "input-2" ? "runner-b" : undefined]),
      );
      assert.equal((await store.inbox.pending("session-2"))[0]?.runner?.runnerId, "runner-a");
      assert.equal(await store.inbox.abandon(session, "runner-a"), 0);
      assert.equal(await store.inbox.abandon("session-3", "runner-a"), 0);
    },
  },
  {
    id: "INBOX-TEXT",
    title: "any well-formed text comes back as it was offered, and the same text is the same input",
    async run({ open, reopen }) {
      const store = await open();
      const texts = [
        "",
        "\u0000a\u0000",
        "😀 ünïcödé \u2028 \u202E",
        `'; DROP TABLE inputs; --"`,
        "x".repeat(1_000_000),
        "\r\n\t",
      ];
      for (const [index, text] of texts.entries()) await offered(store, "a", `input-${index}`, { text });
      const again = await reopen();
      for (const [index, text] of texts.entries()) {
        assert.equal((await inputOf(again, `input-${index}`)).text, text);
        const offer = await again.inbox.offer(offerOf("a", `input-${index}`, { text }));
        assert.equal(offer.kind, "known");
      }
    },
  },
];
