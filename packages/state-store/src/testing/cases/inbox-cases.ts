/** What the inbox keeps of an accepted input, to its end. Whose turn it is stands in `queue-cases.ts`. */
import assert from "node:assert/strict";
import type { JsonValue } from "../../json.ts";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  ask,
  assertVerified,
  beginOf,
  calls,
  changesNothing,
  inputOf,
  offered,
  offerOf,
  recordsOf,
  refuses,
  says,
  session,
  startTurn,
  take,
} from "../scene.ts";

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
    async run({ open, host }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const settledInputs = [{ inputId: "input-a", end: "answered" }] as const;
      await store.transcript.append({ grant, turnId, entries: [says("said", "done")], settledInputs });
      const settled = await inputOf(store, "input-a");
      await host.advance(1_000);
      await store.transcript.append({ grant, turnId, entries: [says("more", "again")], settledInputs });
      assert.deepEqual(await inputOf(store, "input-a"), settled);
      const other = [{ inputId: "input-a", end: "failed" }] as const;
      await refuses(store, "STORE_CONTRACT", () =>
        store.transcript.append({ grant, turnId, entries: [says("other", "no")], settledInputs: other }),
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
    id: "INBOX-ABANDON-ONE",
    title: "to abandon one input of a runner makes an orphan of that one alone, where it is that runner's",
    async run({ open }) {
      const store = await open();
      await offered(store, "a", "input-1");
      await offered(store, "b", "input-2");
      await offered(store, "a", "input-3");
      const runners = async (): Promise<readonly unknown[]> =>
        (await store.inbox.pending(session)).map((input) => [input.inputId, input.runner?.runnerId]);
      assert.equal(await store.inbox.abandon(session, "runner-a", "input-2"), 0);
      assert.equal(await store.inbox.abandon(session, "runner-a", "input-3"), 1);
      assert.deepEqual(await runners(), [
        ["input-1", "runner-a"],
        ["input-2", "runner-b"],
        ["input-3", undefined],
      ]);
      assert.equal(await store.inbox.abandon(session, "runner-a", "input-3"), 0);
      await take(store, "a", { begin: beginOf("a") });
      assert.equal(await store.inbox.abandon(session, "runner-a", "input-1"), 0);
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
  {
    id: "INBOX-SETTINGS",
    title:
      "what an input is to be run with is there for whoever runs it, over crashes and pauses, and until it is settled",
    async run({ open, reopen }) {
      const settings = { instructions: "Be \u0000short. 😀", tools: [{ name: "look" }, null, 1.5], model: {} };
      const offeredTo = await open();
      const withSettings = (store: StateStore) => store.inbox.offer(offerOf("a", "input-1", { settings }));
      const [first] = [await withSettings(offeredTo), await offered(offeredTo, "a", "input-2")];
      assert.deepEqual(first.kind === "accepted" && first.input.settings, settings);
      const store = await reopen();
      assert.deepEqual((await store.inbox.pending(session))[0]?.settings, settings);
      await store.inbox.abandon(session, "runner-a");
      const { grant, granted } = await take(store, "b", { begin: beginOf("b") });
      assert.deepEqual(granted.input?.settings, settings);
      const turnId = "turn-b";
      await store.transcript.append({ grant, turnId, entries: [calls("step", "call-1")] });
      await store.turns.suspend({ grant, turnId, callIds: ["call-1"] });
      await store.turns.answer({ sessionId: session, callId: "call-1", decision: "allow", by: "somebody" });
      const again = await reopen();
      const goesOn = await take(again, "c", { begin: { ...beginOf("c"), resumes: true } });
      assert.deepEqual(goesOn.granted.input?.settings, settings);
      assert.deepEqual((await recordsOf(again)).inputs[0]?.settings, settings);
      await again.turns.end({ grant: goesOn.grant, turnId, outcome: "answered", release: true });
      for (const inputId of ["input-1", "input-2"])
        assert.equal((await inputOf(again, inputId)).settings, undefined, `${inputId} has settings`);
      await assertVerified(again);
    },
  },
  {
    id: "INBOX-SETTINGS-b",
    title: "the settings of an input that is known stay, and one whose id is free again has those it is offered with",
    async run({ open }) {
      const store = await open();
      const settingsOf = async () => (await inputOf(store, "input-1")).settings;
      const offer = (settings: JsonValue | undefined) =>
        store.inbox.offer(offerOf("a", "input-1", settings === undefined ? {} : { settings }));
      await offer({ model: { seed: 1 } });
      await offer({ model: { seed: 2 } });
      await offer(undefined);
      assert.deepEqual(await settingsOf(), { model: { seed: 1 } });
      await store.inbox.abandon(session, "runner-a");
      await offer({ model: { seed: 3 } });
      assert.deepEqual(await settingsOf(), { model: { seed: 1 } });
      await store.inbox.withdraw(session, "input-1", "expired");
      assert.equal(await settingsOf(), undefined);
      await offer({ model: { seed: 4 } });
      assert.deepEqual(await settingsOf(), { model: { seed: 4 } });
      await store.inbox.withdraw(session, "input-1", "expired");
      await offer(undefined);
      assert.equal(await settingsOf(), undefined);
    },
  },
];
