/** Reading a transcript back: for the model, and for people. */
import assert from "node:assert/strict";
import type { StateStore } from "../../state-store.ts";
import type { LoadOptions } from "../../transcript.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { beginOf, calls, finishes, offered, says, session, spoken, take } from "../scene.ts";

async function loadKeys(store: StateStore, options?: LoadOptions): Promise<readonly string[]> {
  const { entries } = await store.transcript.load(session, options);
  return entries.map((entry) => entry.key);
}

export const transcriptCases: readonly ConformanceCase[] = [
  {
    id: "SESSION-LOAD",
    title: "the model's context comes in its own order; with `all` every entry comes in the order of appending",
    async run({ open, reopen }) {
      await spoken(await open());
      const store = await reopen();
      assert.deepEqual(await loadKeys(store), ["summary", "a2", "input/input-b", "b1", "b2"]);
      const everything = ["input/input-a", "a1", "a2", "input/input-b", "b1", "b2", "summary"];
      assert.deepEqual(await loadKeys(store, { all: true }), everything);
    },
  },
  {
    id: "SESSION-LOAD-b",
    title:
      "a load may be of one turn, of what came after or before an entry, and of the newest or oldest so many, always oldest first",
    async run({ open }) {
      const store = await open();
      await spoken(store);
      assert.deepEqual(await loadKeys(store, { turnId: "turn-a" }), ["a2"]);
      assert.deepEqual(await loadKeys(store, { turnId: "turn-a", all: true }), ["input/input-a", "a1", "a2"]);
      assert.deepEqual(await loadKeys(store, { turnId: "turn-unknown" }), []);
      const { entries } = await store.transcript.load(session, { all: true });
      const afterSeq = entries.find((entry) => entry.key === "b1")?.seq ?? assert.fail("no entry b1");
      assert.deepEqual(await loadKeys(store, { afterSeq, all: true }), ["b2", "summary"]);
      assert.deepEqual(await loadKeys(store, { beforeSeq: afterSeq, all: true }), [
        "input/input-a",
        "a1",
        "a2",
        "input/input-b",
      ]);
      assert.deepEqual(await loadKeys(store, { beforeSeq: afterSeq, all: true, limit: 2 }), ["a2", "input/input-b"]);
      assert.deepEqual(await loadKeys(store, { beforeSeq: afterSeq }), ["a2", "input/input-b"]);
      assert.deepEqual(await loadKeys(store, { afterSeq, beforeSeq: afterSeq, all: true }), []);
      assert.deepEqual(await loadKeys(store, { first: 2, all: true }), ["input/input-a", "a1"]);
      assert.deepEqual(await loadKeys(store, { first: 1, afterSeq, all: true }), ["b2"]);
      assert.deepEqual(await loadKeys(store, { first: 2 }), ["summary", "a2"]);
      assert.deepEqual(await loadKeys(store, { first: 1, all: true, turnId: "turn-b" }), ["input/input-b"]);
      assert.deepEqual(await loadKeys(store, { first: 0, all: true }), []);
      assert.deepEqual(await loadKeys(store, { limit: 2 }), ["b1", "b2"]);
      assert.deepEqual(await loadKeys(store, { limit: 2, all: true }), ["b2", "summary"]);
      assert.deepEqual(await loadKeys(store, { limit: 1, all: true, turnId: "turn-a" }), ["a2"]);
      assert.deepEqual(await loadKeys(store, { limit: 0 }), []);
      assert.equal((await loadKeys(store, { limit: 1_000 })).length, 5);
    },
  },
  {
    id: "SESSION-LOAD-c",
    title: "a session that does not exist loads as empty at revision 0",
    async run({ open }) {
      const store = await open();
      const empty = { entries: [], revision: 0, compactionCount: 0 };
      assert.deepEqual(await store.transcript.load(session), empty);
      assert.deepEqual(await store.transcript.load(session, { all: true, limit: 1 }), empty);
    },
  },
  {
    id: "SESSION-REVISION",
    title: "the revision grows with every change of the transcript and with nothing else",
    async run({ open, host }) {
      const store = await open();
      let last = 0;
      const revisionAfter = async (act: () => Promise<unknown>): Promise<number> => {
        await act();
        const { revision } = await store.transcript.load(session);
        assert.equal((await store.sessions.read(session))?.revision, revision);
        const step = revision - last;
        last = revision;
        return step;
      };
      assert.equal(await revisionAfter(() => offered(store, "a", "input-a")), 0);
      const { grant } = await take(store, "a", { begin: beginOf("a") });
      const turn = { grant, turnId: "turn-a" };
      assert.ok((await revisionAfter(async () => undefined)) > 0, "a taken input is an entry");
      const append = (...entries: ReturnType<typeof says>[]) => store.transcript.append({ ...turn, entries });
      assert.ok(
        (await revisionAfter(() => append(says("one", "1"), calls("call", "call-1")))) > 0,
        "a step is a change",
      );
      assert.equal(await revisionAfter(() => append(says("one", "1"))), 0);
      const settledInputs = [{ inputId: "input-a", end: "answered" }] as const;
      const settle = () => store.transcript.append({ ...turn, entries: [], settledInputs });
      assert.equal(await revisionAfter(settle), 0);
      assert.equal(await revisionAfter(() => store.leases.renew(grant, 60_000)), 0);
      assert.equal(await revisionAfter(() => host.advance(1_000)), 0);
      assert.equal(
        await revisionAfter(() => store.turns.requestStop(session, { hard: true, reason: "shutdown", by: "x" })),
        0,
      );
      assert.ok((await revisionAfter(() => finishes(store, "a", grant))) > 0, "a closed call is an entry");
    },
  },
];
