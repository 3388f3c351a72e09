/** A step that comes again: keys and digests make it harmless, and tell other content. */
import assert from "node:assert/strict";
import type { ConformanceCase } from "../conformance-case.ts";
import { changesNothing, contextKeys, draft, refuses, says, startTurn, spokenTurn } from "../scene.ts";

export const retryCases: readonly ConformanceCase[] = [
  {
    id: "APPEND-2d",
    title: "a step repeated after an unknown outcome is committed once: entries, settlement and revision stand",
    async run({ open, reopen }) {
      const first = await open();
      const { grant, turnId } = await startTurn(first, "a");
      const settledInputs = [{ inputId: "input-a", end: "answered" }] as const;
      const step = { grant, turnId, entries: [says("one", "1"), says("two", "2")], settledInputs };
      const answer = await first.transcript.append(step);
      const store = await reopen();
      assert.deepEqual(await changesNothing(store, () => store.transcript.append(step)), answer);
      await store.transcript.append({ grant, turnId, entries: [says("three", "3")] });
      const late = await changesNothing(store, () => store.transcript.append(step));
      assert.equal(late.kind, "committed");
    },
  },
  {
    id: "APPEND-2e",
    title:
      "keys come before the token: a committed step is committed for a replaced holder too, and after the turn's end",
    async run({ open }) {
      const store = await open();
      const a = await spokenTurn(store);
      const step = { grant: a.grant, turnId: a.turnId, entries: [says("said", "first")] };
      await startTurn(store, "b", { reclaim: a.grant });
      const answer = await changesNothing(store, () => store.transcript.append(step));
      assert.equal(answer.kind, "committed");
    },
  },
  {
    id: "APPEND-2f",
    title:
      "a known key with other content is ENTRY_CONFLICT, under a good token and a stale one, and nothing is stored",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await spokenTurn(store);
      const conflicting = [says("new", "x"), says("said", "other")];
      const append = () => store.transcript.append({ grant, turnId, entries: conflicting });
      await refuses(store, "ENTRY_CONFLICT", append);
      await refuses(store, "ENTRY_CONFLICT", () =>
        store.turns.end({ grant, turnId, outcome: "answered", entries: conflicting, release: true }),
      );
      await startTurn(store, "b", { reclaim: grant });
      await refuses(store, "ENTRY_CONFLICT", append);
    },
  },
  {
    id: "APPEND-2g",
    title: "of a step that is known in part only the rest is stored; a key that stands twice in one step is one entry",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await spokenTurn(store);
      const step = { grant, turnId, entries: [says("said", "first"), says("next", "second"), says("next", "second")] };
      assert.equal((await store.transcript.append(step)).kind, "committed");
      assert.deepEqual(await contextKeys(store), ["input/input-a", "said", "next"]);
      await refuses(store, "ENTRY_CONFLICT", () =>
        store.transcript.append({ grant, turnId, entries: [says("twice", "1"), says("twice", "2")] }),
      );
    },
  },
  {
    id: "APPEND-2h",
    title: "the order in which a body's keys were set, and keys set to undefined, do not make other content",
    async run({ open }) {
      const store = await open();
      const { grant, turnId } = await startTurn(store, "a");
      const input = { b: [1, { y: 1, x: 2 }], a: "1" };
      const call = { type: "tool-call", callId: "call-1", name: "shell", input } as const;
      await store.transcript.append({
        grant,
        turnId,
        entries: [draft("call", { role: "assistant", parts: [call], model: "demo/demo" })],
      });
      const reordered = { input: { a: "1", b: [1, { x: 2, y: 1 }], c: undefined }, name: "shell", callId: "call-1" };
      const body = {
        model: "demo/demo",
        parts: [{ ...reordered, type: "tool-call" } as const],
        role: "assistant",
      } as const;
      const answer = await changesNothing(store, () =>
        store.transcript.append({ grant, turnId, entries: [{ key: "call", body }] }),
      );
      assert.equal(answer.kind, "committed");
    },
  },
];
