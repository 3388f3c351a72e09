import { CodedError } from "@turnkeeper/kernel";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { counted, talkativeModel, words } from "./long-talk.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

interface Counts {
  readonly input?: number;
  readonly output?: number;
  readonly reasoning?: number;
}

/** An answer with the counts of a provider, and perhaps a call before it is done. */
function answer({ input, output, reasoning }: Counts, callId?: string): ScriptedStep {
  const reason = callId === undefined ? "stop" : "tool-calls";
  return {
    parts: [
      { type: "reasoning-start", id: "r" },
      { type: "reasoning-delta", id: "r", delta: words(40) },
      { type: "reasoning-end", id: "r" },
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "four words of text" },
      { type: "text-end", id: "t" },
      ...(callId === undefined
        ? []
        : [{ type: "tool-call", toolCallId: callId, toolName: "read", input: "{}" } as const]),
      {
        type: "finish",
        usage: {
          inputTokens: { total: input, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
          outputTokens: { total: output, text: undefined, reasoning },
        },
        finishReason: { unified: reason, raw: reason },
      },
    ],
  };
}

const read = defineTool({
  name: "read",
  description: "Reads.",
  input: z.object({}),
  execute: async () => words(100),
});

describe("how full a context is, for people", () => {
  it("starts from the first answer of the last turn, and charges reasoning to the newest answer alone", async () => {
    const steps = [
      answer({ input: 1000, output: 60, reasoning: 40 }, "c"),
      answer({ input: 9000, output: 90, reasoning: 40 }),
    ];
    const agent = await bench.agentOn(talkativeModel(steps, counted("S"), 100_000), {}, [read]);
    await bench.finished(agent.run("s", "go"));
    const usage = await agent.context("s");
    // 1000 + 60 - 40 as it was counted; then the result (about 100) and the newest answer with its reasoning (about 45).
    expect(usage).toMatchObject({ anchor: "turn-base", windowTokens: 100_000, thresholdTokens: 75_000 });
    expect(usage.usedTokens).toBeGreaterThan(1160);
    expect(usage.usedTokens).toBeLessThan(1200);
    expect(usage.entryCounts).toEqual({ user: 1, assistant: 2, tool: 1 });
  });

  it("takes the last answer that was counted where the turn's first was not, and else estimates", async () => {
    const steps = [answer({}, "c"), answer({ input: 500, output: 20, reasoning: 5 }), answer({})];
    const agent = await bench.agentOn(talkativeModel(steps, counted("S")), {}, [read]);
    await bench.finished(agent.run("s", "go"));
    // It is the newest answer: its reasoning counts.
    expect(await agent.context("s")).toMatchObject({ anchor: "last-response", usedTokens: 520 });
    await bench.finished(agent.run("s", "and on"));
    const later = await agent.context("s");
    expect(later).toMatchObject({ anchor: "last-response" });
    expect(later.usedTokens).toBeGreaterThan(515);
    const other = await bench.agentOn(talkativeModel([answer({})], counted("S")));
    await bench.finished(other.run("other", words(100)));
    expect(await other.context("other")).toMatchObject({ anchor: "estimate" });
    expect(await other.context("nobody")).toMatchObject({ usedTokens: 0, entryCounts: {}, compactionCount: 0 });
  });

  it("forgets both anchors at a compaction, and tells what was said since", async () => {
    const model = talkativeModel(
      [answer({ input: 50_000, output: 60 }), answer({ input: 700, output: 10 })],
      counted("S"),
    );
    const agent = await bench.agentOn(model);
    await bench.finished(agent.run("s", "go"));
    expect((await agent.context("s")).usedTokens).toBe(50_060);
    await bench.finished(agent.compact("s"));
    const after = await agent.context("s");
    expect(after).toMatchObject({ anchor: "estimate", compactionCount: 1, tokensSinceCompaction: 0 });
    expect(after.usedTokens).toBeLessThan(100);
    await bench.finished(agent.run("s", "on"));
    expect(await agent.context("s")).toMatchObject({ anchor: "turn-base", usedTokens: 710 });
  });

  it("counts instructions and tools after a compaction too, as the decision to compact does", async () => {
    const steps = [answer({ input: 50_000, output: 60 })];
    const agent = await bench.agentOn(talkativeModel(steps, counted("S")), { system: "x".repeat(4000) }, [read]);
    await bench.finished(agent.run("s", "go"));
    await bench.finished(agent.compact("s"));
    const { anchor, usedTokens } = await agent.context("s");
    expect(anchor).toBe("estimate");
    // 4,000 letters are about 1,000 tokens, the declared tool some more, the summary fewer than 100.
    expect(usedTokens).toBeGreaterThan(1020);
    expect(usedTokens).toBeLessThan(1200);
  });

  it("tells of a cool-down and of what failed", async () => {
    const failing: ScriptedStep = {
      fail: new CodedError("MODEL_BAD_RESPONSE", "No JSON.", { context: { retryable: false } }),
    };
    const agent = await bench.agentOn(talkativeModel([answer({ input: 900, output: 9 })], failing));
    await bench.finished(agent.run("s", "go"));
    expect(await bench.finished(agent.compact("s"))).toMatchObject({
      outcome: "failed",
      reason: "COMPACTION_FAILED",
      detail: "No JSON.",
    });
    const { coolDownMs, health } = await agent.context("s");
    expect(coolDownMs).toBeGreaterThan(29_000);
    expect(health).toMatchObject({ error: "No JSON." });
  });
});
