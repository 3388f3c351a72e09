/** Reading a transcript back: for the model, for people, and by what it says. */
import assert from "node:assert/strict";
import type { StateStore } from "../../state-store.ts";
import type { LoadOptions } from "../../transcript.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { beginOf, calls, draft, finishes, offered, says, session, startTurn, summarises, take } from "../scene.ts";

async function loadKeys(store: StateStore, options?: LoadOptions): Promise<readonly string[]> {
  const { entries } = await store.transcript.load(session, options);
  return entries.map((entry) => entry.key);
}

/** Two turns; the first two entries are replaced by a summary. Context: summary, a2, input/input-b, b1, b2. */
async function spoken(store: StateStore): Promise<void> {
  const a = await startTurn(store, "a");
  const entries = [says("a1", "apple"), says("a2", "pear")];
  await store.transcript.append({ grant: a.grant, turnId: a.turnId, entries });
  await finishes(store, "a", a.grant);
  const b = await startTurn(store, "b");
  const turn = { grant: b.grant, turnId: b.turnId };
  await store.transcript.append({ ...turn, entries: [says("b1", "plum"), says("b2", "Apple Pie")] });
  const { entries: context } = await store.transcript.load(session);
  const throughSeq = context.find((entry) => entry.key === "a1")?.seq ?? assert.fail("no entry a1");
  const basis = { throughSeq, compactionCount: 0 };
  await store.transcript.applyCompaction({ ...turn, basis, summary: summarises("summary", "fruit") });
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
    title: "a load may be of one turn, of what came after an entry, and of the newest so many, still oldest first",
    async run({ open }) {
      const store = await open();
      await spoken(store);
      assert.deepEqual(await loadKeys(store, { turnId: "turn-a" }), ["a2"]);
      assert.deepEqual(await loadKeys(store, { turnId: "turn-a", all: true }), ["input/input-a", "a1", "a2"]);
      assert.deepEqual(await loadKeys(store, { turnId: "turn-unknown" }), []);
      const { entries } = await store.transcript.load(session, { all: true });
      const afterSeq = entries.find((entry) => entry.key === "b1")?.seq ?? assert.fail("no entry b1");
      assert.deepEqual(await loadKeys(store, { afterSeq, all: true }), ["b2", "summary"]);
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
  {
    id: "SESSION-SEARCH",
    title: "a search finds what was said, by whom ever, archived too, newest first, in one session or in all",
    async run({ open, host }) {
      const store = await open();
      await spoken(store);
      await host.advance(1_000);
      const other = await take(store, "c", { sessionId: "session-2" });
      await store.turns.begin(other.grant, "turn-c", []);
      const note = draft("note", { role: "notice", text: "an apple a day" });
      const result = draft("result", {
        role: "tool",
        callId: "call-1",
        name: "shell",
        status: "ok",
        output: "green apple",
      });
      const entries = [note, calls("call", "call-1"), result];
      await store.transcript.append({ grant: other.grant, turnId: "turn-c", entries });
      const found = async (text: string, options?: { sessionId?: string; limit?: number }) =>
        (await store.transcript.search(text, options)).map((hit) => `${hit.sessionId}/${hit.entry.key}`);
      assert.deepEqual(await found("apple", { sessionId: session }).then((hits) => hits.at(-1)), "session-1/a1");
      const hits = await found("apple");
      assert.deepEqual(hits.slice(0, 2), ["session-2/result", "session-2/note"]);
      assert.ok(hits.includes("session-1/a1"), "an archived entry was not found");
      assert.deepEqual(await found("apple", { limit: 1 }), ["session-2/result"]);
      assert.deepEqual(await found("fruit"), ["session-1/summary"]);
      assert.deepEqual(await found("text of input-b"), ["session-1/input/input-b"]);
      assert.deepEqual(await found("banana"), []);
      const [hit] = await store.transcript.search("plum");
      const { entries: all } = await store.transcript.load(session, { all: true });
      assert.deepEqual(
        hit?.entry,
        all.find((entry) => entry.key === "b1"),
      );
    },
  },
  {
    id: "SESSION-SEARCH-b",
    title: "a search looks for its text as it stands: no character of it is a pattern",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const texts = [
        "100% sure",
        "100 times",
        "snake_case",
        "snakeXcase",
        `say "hi" * NEAR(a b)`,
        "back\\slash",
        "it's",
      ];
      const entries = texts.map((text, index) => says(`text-${index}`, text));
      await store.transcript.append({ grant, turnId, entries });
      const found = async (text: string) => (await store.transcript.search(text)).map((hit) => hit.entry.key);
      assert.deepEqual(await found("100%"), ["text-0"]);
      assert.deepEqual(await found("snake_case"), ["text-2"]);
      assert.deepEqual(await found(`"hi" * NEAR(`), ["text-4"]);
      assert.deepEqual(await found("back\\slash"), ["text-5"]);
      assert.deepEqual(await found("t's"), ["text-6"]);
    },
  },
];
