/** One step of a turn: who may write it, and what it settles. */
import assert from "node:assert/strict";
import { digestOf } from "../../json.ts";
import type { StateStore } from "../../state-store.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertVerified,
  changesNothing,
  contextKeys,
  draft,
  finishes,
  inputOf,
  offered,
  recordsOf,
  refuses,
  says,
  session,
  startTurn,
  take,
  spokenTurn,
} from "../scene.ts";

type Turn = Awaited<ReturnType<typeof startTurn>>;

/** Whatever the replaced holder of `turn` writes is refused by its token, and changes nothing. */
async function isFencedOff(store: StateStore, { grant, turnId }: Turn): Promise<void> {
  const settledInputs = [{ inputId: "input-a", end: "answered" }] as const;
  const steps = [
    { entries: [says("late", "too late")] },
    { entries: [says("late", "too late")], settledInputs },
    { entries: [says("said", "first"), says("late", "too late")] },
    // No entries are not "every key known": the token decides.
    { entries: [], settledInputs },
  ];
  for (const step of steps) {
    const answer = await changesNothing(store, () => store.transcript.append({ grant, turnId, ...step }));
    assert.deepEqual(answer, { kind: "stale-token" });
  }
}

export const appendCases: readonly ConformanceCase[] = [
  {
    id: "APPEND-1",
    title: "an append under a replaced grant leaves transcript, inbox and turn untouched",
    async run({ open, host }) {
      for (const way of ["lapse", "reclaim"] as const) {
        const store = await open();
        const a = await spokenTurn(store);
        if (way === "lapse") await host.advance(5_000);
        await startTurn(store, "b", way === "reclaim" ? { reclaim: a.grant } : {});
        await isFencedOff(store, a);
      }
    },
  },
  {
    id: "APPEND-1b",
    title:
      "so does one under a grant that was settled, released or deleted with its session, though nobody holds it now",
    async run({ open, reopen, host }) {
      for (const way of ["settled", "released", "deleted", "deleted and made again"] as const) {
        const a = await spokenTurn(await open());
        const store = await reopen();
        if (way === "settled") await store.turns.settleForeign(a.grant);
        if (way === "released") await store.leases.release(a.grant);
        if (way.startsWith("deleted")) {
          await host.advance(5_000);
          assert.deepEqual(await store.sessions.delete(session), { kind: "deleted" });
        }
        if (way.endsWith("again")) await startTurn(store, "b");
        const { grant, turnId } = a;
        const entries = [says("late", "too late")];
        const answer = await changesNothing(store, () => store.transcript.append({ grant, turnId, entries }));
        assert.deepEqual(answer, { kind: "stale-token" }, way);
        const end = { grant, turnId, outcome: "answered", entries, release: true } as const;
        assert.deepEqual(await changesNothing(store, () => store.turns.end(end)), { kind: "stale-token" }, way);
      }
    },
  },
  {
    id: "APPEND-1c",
    title: "a write needs holder and token: with one of them wrong it is stale",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await spokenTurn(store);
      for (const wrong of [
        { ...grant, holderId: "holder-b" },
        { ...grant, fencingToken: grant.fencingToken + 1 },
        { ...grant, fencingToken: grant.fencingToken - 1 },
      ]) {
        const entries = [says("late", "too late")];
        const answer = await changesNothing(store, () => store.transcript.append({ grant: wrong, turnId, entries }));
        assert.deepEqual(answer, { kind: "stale-token" });
      }
    },
  },
  {
    id: "APPEND-1d",
    title: "a holder whose lease ran out and was not claimed still writes: expiry makes reclaimable, not taken",
    async run({ open, host }) {
      const store = await open();
      const { grant, turnId } = await spokenTurn(store);
      await host.advance(3_600_000);
      const answer = await store.transcript.append({ grant, turnId, entries: [says("next", "second")] });
      assert.equal(answer.kind, "committed");
      await finishes(store, "a", grant);
      await assertVerified(store);
    },
  },
  {
    id: "APPEND-2",
    title: "entries and the settlement of the inputs they answer commit together, and outlive a crash together",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await offered(store, "b", "input-b", { onBusy: "queue" });
      await store.turns.begin(grant, turnId, ["input-b"]);
      const settledInputs = [
        { inputId: "input-a", end: "answered" },
        { inputId: "input-b", end: "cancelled" },
      ] as const;
      const answer = await store.transcript.append({ grant, turnId, entries: [says("said", "done")], settledInputs });
      assert.equal(answer.kind, "committed");
      const again = await reopen();
      const { entries, revision } = await again.transcript.load(session);
      assert.equal(entries.at(-1)?.key, "said");
      assert.equal(revision, answer.revision);
      for (const { inputId, end } of settledInputs) {
        const input = await inputOf(again, inputId);
        assert.deepEqual(input.state === "settled" && [input.end, input.turnId], [end, turnId]);
      }
      await assertVerified(again);
    },
  },
  {
    id: "APPEND-2b",
    title: "a step that settles an input its turn never took is refused whole: no entry, no settlement",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await offered(store, "b", "input-b", { onBusy: "queue" });
      for (const stranger of ["input-b", "input-unknown"]) {
        const settledInputs = [
          { inputId: "input-a", end: "answered" },
          { inputId: stranger, end: "answered" },
        ] as const;
        await refuses(store, "STORE_CONTRACT", () =>
          store.transcript.append({ grant, turnId, entries: [says("said", "done")], settledInputs }),
        );
      }
      await finishes(store, "a", grant);
      await assertVerified(store);
    },
  },
  {
    id: "APPEND-2c",
    title: "entries stand in the order of their appending, numbered upwards, with turn, digest and content as given",
    async run({ open, reopen }) {
      const store = await open();
      const a = await startTurn(store, "a");
      const drafts = [
        says("one", "1"),
        draft("two", {
          role: "assistant",
          parts: [
            { type: "reasoning", text: "hm", provider: { signature: "s", nested: { list: [1, null, { a: "b" }] } } },
            { type: "text", text: "" },
          ],
          partial: true,
          model: "demo/demo",
          usage: { inputTokens: 1, outputTokens: 2 },
        }),
        draft("three", { role: "notice", text: "interrupted \u0000 😀" }),
      ];
      await store.transcript.append({ grant: a.grant, turnId: a.turnId, entries: drafts.slice(0, 2) });
      await store.transcript.append({ grant: a.grant, turnId: a.turnId, entries: drafts.slice(2) });
      await finishes(store, "a", a.grant);
      const b = await startTurn(store, "b");
      await store.transcript.append({ grant: b.grant, turnId: b.turnId, entries: [says("four", "4")] });
      const { entries } = await (await reopen()).transcript.load(session);
      assert.deepEqual(
        entries.map((entry) => [entry.key, entry.turnId]),
        [
          ["input/input-a", "turn-a"],
          ["one", "turn-a"],
          ["two", "turn-a"],
          ["three", "turn-a"],
          ["input/input-b", "turn-b"],
          ["four", "turn-b"],
        ],
      );
      const seqs = entries.map((entry) => entry.seq);
      assert.deepEqual(
        seqs,
        [...new Set(seqs)].toSorted((left, right) => left - right),
      );
      for (const { key, body } of drafts) {
        const entry = entries.find((one) => one.key === key) ?? assert.fail(`entry ${key} is gone`);
        assert.deepEqual(entry.body, body);
        assert.equal(entry.digest, digestOf(body));
        assert.deepEqual([entry.archived, entry.late], [false, false]);
        assert.ok(Number.isFinite(entry.atMs), `entry ${key} has no time`);
      }
    },
  },
  {
    id: "APPEND-2i",
    title: "each session has keys of its own",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      await store.transcript.append({ grant, turnId, entries: [says("said", "here")] });
      const other = await take(store, "b", { sessionId: "session-2" });
      await store.turns.begin(other.grant, "turn-b", []);
      const entries = [says("said", "there")];
      const answer = await store.transcript.append({ grant: other.grant, turnId: "turn-b", entries });
      assert.equal(answer.kind, "committed");
      assert.equal((await recordsOf(store, "session-2")).entries.length, 1);
    },
  },
  {
    id: "APPEND-2j",
    title: "a step that settles without saying anything settles",
    async run({ open, reopen }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const settledInputs = [{ inputId: "input-a", end: "interrupted" }] as const;
      const answer = await store.transcript.append({ grant, turnId, entries: [], settledInputs });
      assert.equal(answer.kind, "committed");
      const again = await reopen();
      const input = await inputOf(again, "input-a");
      assert.equal(input.state === "settled" && input.end, "interrupted");
      assert.deepEqual(await contextKeys(again), ["input/input-a"]);
    },
  },
];
