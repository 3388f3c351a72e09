import { verifyRecords } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import type { TurnEvent } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { counted, overflow, talkativeModel, transcriptOf, words, wordsOf } from "./long-talk.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

const compactions = (events: readonly TurnEvent[]): readonly TurnEvent[] =>
  events.filter(({ type }) => type.startsWith("compaction."));

describe("a conversation over its threshold", () => {
  it("is summarised before the model is asked again; its end stays, and what was said stays readable", async () => {
    const model = talkativeModel(
      [counted(words(400)), counted(words(400)), counted("short")],
      counted("SUMMARY"),
      2000,
    );
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    await bench.finished(agent.run("s", `second question ${words(800)}`));
    const third = agent.run("s", "third question");
    expect(await bench.finished(third)).toMatchObject({ outcome: "answered", text: "short" });
    const events = compactions(await bench.eventsOf(third));
    expect(events).toMatchObject([
      { type: "compaction.started", cause: "threshold", windowTokens: 2000 },
      { type: "compaction.finished", cause: "threshold", method: "model" },
    ]);
    expect(model.summaries).toHaveLength(1);
    const asked = wordsOf(model.turns[2] as never);
    expect(asked).toContain("SUMMARY");
    expect(asked).toContain("first question");
    expect(asked).toContain("third question");
    const { all, context } = await transcriptOf(bench.store, "s");
    expect(context[0]?.body.role).toBe("summary");
    expect(all.filter(({ body }) => body.role === "user")).toHaveLength(3);
    const found = await bench.store.transcript.search("second question");
    expect(found.hits.map(({ entry }) => entry.archived)).toContain(true);
    const records = await bench.store.sessions.records("s");
    expect(records && verifyRecords(records)).toEqual([]);
  });

  it("is mended when the provider proves that it is too long", async () => {
    const model = talkativeModel([counted(words(300)), overflow(), counted("fine")], counted("SUMMARY"));
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "first question"));
    const second = agent.run("s", "second question");
    expect(await bench.finished(second)).toMatchObject({ outcome: "answered", text: "fine" });
    expect(compactions(await bench.eventsOf(second))).toMatchObject([
      { type: "compaction.started", cause: "overflow" },
      { type: "compaction.finished", cause: "overflow" },
    ]);
    expect(model.turns).toHaveLength(3);
  });
});

describe("the options of compaction", () => {
  it.each([
    [{ threshold: 1.5 }, /compaction\.threshold: expected a share of at most 1, got 1\.5/],
    [{ threshold: 0 }, /compaction\.threshold: expected a finite number above 0, got 0/],
    [{ contextTimeoutMs: Number.NaN }, /compaction\.contextTimeoutMs: expected a finite number above 0, got NaN/],
    [{ treshold: 0.5 }, /treshold/],
  ])("are refused by name: %j", async (compaction: object, told) => {
    await expect(bench.agentOn(talkativeModel([], counted("S")), { compaction })).rejects.toThrow(told);
  });
});
