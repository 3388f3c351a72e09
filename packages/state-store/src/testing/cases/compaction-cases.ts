/** A summary takes the place of what it was made from, and of nothing else. */
import assert from "node:assert/strict";
import type { Grant } from "../../identity.ts";
import type { StateStore } from "../../state-store.ts";
import type { CompactionBasis, CompactionResult } from "../../transcript.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertGrew,
  assertVerified,
  changesNothing,
  contextKeys,
  finishes,
  refuses,
  says,
  session,
  startTurn,
  summarises,
} from "../scene.ts";

interface Turn {
  readonly grant: Grant;
  readonly turnId: string;
}

/** A turn that has said `one` to `four` after its input. */
async function talkativeTurn(store: StateStore): Promise<Turn> {
  const { grant, turnId } = await startTurn(store, "a");
  const entries = ["one", "two", "three", "four"].map((key) => says(key, `text ${key}`));
  await store.transcript.append({ grant, turnId, entries });
  return { grant, turnId };
}

/** The basis that ends with the entry of this key, as the context is now. */
async function basisThrough(store: StateStore, key: string): Promise<CompactionBasis> {
  const { entries, compactionCount } = await store.transcript.load(session);
  const last = entries.find((entry) => entry.key === key) ?? assert.fail(`entry ${key} is not in the context`);
  return { throughSeq: last.seq, compactionCount };
}

function compact(store: StateStore, turn: Turn, basis: CompactionBasis, key: string): Promise<CompactionResult> {
  return store.transcript.applyCompaction({ ...turn, basis, summary: summarises(key, `summary ${key}`) });
}

export const compactionCases: readonly ConformanceCase[] = [
  {
    id: "COMP-1",
    title: "a summary archives its basis and stands in its place; what was appended since stays, in order, once",
    async run({ open, reopen }) {
      const store = await open();
      const turn = await talkativeTurn(store);
      const basis = await basisThrough(store, "two");
      await store.transcript.append({ ...turn, entries: [says("five", "text five")] });
      const before = await store.transcript.load(session);
      const applied = await compact(store, turn, basis, "summary");
      assert.equal(applied.kind, "applied");
      const again = await reopen();
      const after = await again.transcript.load(session);
      assert.deepEqual(
        after.entries.map((entry) => entry.key),
        ["summary", "three", "four", "five"],
      );
      assert.deepEqual([after.compactionCount, after.revision], [1, applied.revision]);
      assertGrew("revision", before.revision, after.revision);
      const everything = await again.transcript.load(session, { all: true });
      assert.deepEqual(
        everything.entries.map((entry) => [entry.key, entry.archived]),
        [
          ["input/input-a", true],
          ["one", true],
          ["two", true],
          ["three", false],
          ["four", false],
          ["five", false],
          ["summary", false],
        ],
      );
      await again.transcript.append({ ...turn, entries: [says("six", "text six")] });
      assert.deepEqual(await contextKeys(again), ["summary", "three", "four", "five", "six"]);
      await finishes(again, "a", turn.grant);
      await assertVerified(again);
    },
  },
  {
    id: "COMP-1b",
    title: "a summary whose basis another compaction replaced is stale and changes nothing",
    async run({ open, reopen }) {
      const first = await open();
      const turn = await talkativeTurn(first);
      const basis = await basisThrough(first, "three");
      assert.equal((await compact(first, turn, basis, "first")).kind, "applied");
      const store = await reopen();
      for (const late of [basis, { ...basis, compactionCount: 2 }]) {
        const answer = await changesNothing(store, () => compact(store, turn, late, "second"));
        assert.deepEqual(answer, { kind: "stale-basis" });
      }
      assert.deepEqual(await contextKeys(store), ["first", "four"]);
    },
  },
  {
    id: "COMP-1c",
    title: "of two compactions of one basis that race exactly one is applied",
    async run({ open }) {
      const store = await open();
      const turn = await talkativeTurn(store);
      const basis = await basisThrough(store, "four");
      const answers = await Promise.all(["left", "right"].map((key) => compact(store, turn, basis, key)));
      assert.deepEqual(answers.map((answer) => answer.kind).toSorted(), ["applied", "stale-basis"]);
      assert.equal((await contextKeys(store)).length, 1);
    },
  },
  {
    id: "COMP-1d",
    title: "a second summary replaces the first one too, wherever in the order of appending that one stands",
    async run({ open, reopen }) {
      const first = await open();
      const turn = await talkativeTurn(first);
      await compact(first, turn, await basisThrough(first, "two"), "first");
      // In the context: first, three, four. The first summary was appended after both, yet stands before them.
      const store = await reopen();
      const applied = await compact(store, turn, await basisThrough(store, "three"), "second");
      assert.equal(applied.kind, "applied");
      assert.deepEqual(await contextKeys(store), ["second", "four"]);
      await store.transcript.append({ ...turn, entries: [says("five", "text five")] });
      await compact(store, turn, await basisThrough(store, "five"), "third");
      assert.deepEqual(await contextKeys(store), ["third"]);
      const everything = await store.transcript.load(session, { all: true });
      assert.equal(new Set(everything.entries.map((entry) => entry.key)).size, everything.entries.length);
      assert.equal(everything.compactionCount, 3);
      await finishes(store, "a", turn.grant);
      await assertVerified(store);
    },
  },
  {
    id: "COMP-1e",
    title: "a summary under a replaced grant is stale and changes nothing",
    async run({ open }) {
      const store = await open();
      const turn = await talkativeTurn(store);
      const basis = await basisThrough(store, "three");
      await startTurn(store, "b", { reclaim: turn.grant });
      const answer = await changesNothing(store, () => compact(store, turn, basis, "summary"));
      assert.deepEqual(answer, { kind: "stale-token" });
    },
  },
  {
    id: "COMP-1f",
    title: "a compaction repeated after an unknown outcome is applied once; its key with another text is a conflict",
    async run({ open, reopen }) {
      const first = await open();
      const turn = await talkativeTurn(first);
      const basis = await basisThrough(first, "two");
      const applied = await compact(first, turn, basis, "summary");
      const store = await reopen();
      assert.deepEqual(await changesNothing(store, () => compact(store, turn, basis, "summary")), applied);
      await refuses(store, "ENTRY_CONFLICT", () =>
        store.transcript.applyCompaction({ ...turn, basis, summary: summarises("summary", "another text") }),
      );
    },
  },
  {
    id: "COMP-1g",
    title: "a summary belongs to a turn that runs",
    async run({ open }) {
      const store = await open();
      const turn = await talkativeTurn(store);
      const basis = await basisThrough(store, "two");
      await refuses(store, "STORE_CONTRACT", () => compact(store, { ...turn, turnId: "turn-unknown" }, basis, "x"));
      await store.turns.end({ ...turn, outcome: "answered", release: false });
      await refuses(store, "STORE_CONTRACT", () => compact(store, turn, basis, "x"));
    },
  },
];
