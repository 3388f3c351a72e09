import { verifyRecords } from "@turnkeeper/state-store";
import type { ToolBody } from "@turnkeeper/state-store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { Conversations } from "../src/conversation.ts";
import { defineTool } from "../src/index.ts";
import type { AgentOptions } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import { toolSet } from "../src/tool-input.ts";
import { turnSoFar } from "../src/turn-so-far.ts";
import { createBench } from "./bench.ts";
import type { Bench } from "./bench.ts";

let bench: Bench;
let runCount = 0;
beforeEach(() => {
  bench = createBench();
  runCount = 0;
});
afterEach(async () => {
  for (const { sessionId } of (await bench.store.sessions.list()).sessions) {
    const records = await bench.store.sessions.records(sessionId);
    expect(records && verifyRecords(records)).toEqual([]);
  }
  await bench.close();
  expect(bench.host.pendingTimerCount()).toBe(0);
});

const page = "a line of a page\n".repeat(100);
const look = defineTool({
  name: "look",
  description: "Answers a long page.",
  input: z.object({}),
  execute: async () => {
    runCount++;
    return page;
  },
});
const fail = defineTool({
  name: "fail",
  description: "Fails.",
  input: z.object({ at: z.number() }),
  execute: async ({ at }) => {
    runCount++;
    throw new Error(`No ${at}.`);
  },
});
const search = defineTool({
  name: "web_search",
  description: "Searches.",
  input: z.object({ at: z.number() }),
  execute: async ({ at }) => {
    runCount++;
    return `found ${at}`;
  },
});

const many = (one: (index: number) => ScriptedStep): ScriptedStep[] =>
  Array.from({ length: 602 }, (_, index) => one(index));
const strict: AgentOptions = { guardrails: { hardStop: true }, maxIterations: 602 };

async function results(): Promise<ToolBody[]> {
  const { entries } = await bench.store.transcript.load("s");
  return entries.flatMap(({ body }) => (body.role === "tool" ? [body] : []));
}

describe("a turn that goes round in circles", () => {
  it("is ended after 5 identical calls instead of 602, and says so", async () => {
    const { agent, model } = await bench.agent(
      many(() => ({ calls: [{ name: "look", input: {} }] })),
      strict,
      [look],
    );
    const turn = agent.run("s", "go");
    expect(await bench.finished(turn)).toMatchObject({
      outcome: "failed",
      reason: "GUARDRAIL_IDENTICAL_CALLS",
      detail: expect.stringContaining("look was called 5 times in a row"),
    });
    expect(runCount).toBe(5);
    const [first, second, ...later] = await results();
    expect(first?.output).toBe(page);
    expect(second).toMatchObject({
      repeats: "call-1",
      output: expect.stringContaining("The same result as that of call"),
    });
    expect(later.every(({ note }) => note?.startsWith("Note: "))).toBe(true);
    // The model is told in the request, and the long page stands in it once.
    const asked = JSON.stringify(model.requests.at(-1)?.prompt);
    expect(asked).toContain("Repeating it will not help");
    expect(asked.split("a line of a page").length - 1).toBe(100);
    const told = (await bench.eventsOf(turn)).filter((event) => event.type === "tool.finished" && event.note);
    expect(told.length).toBeGreaterThan(0);
  });

  it("is ended after 8 failures of one tool instead of 602", async () => {
    const steps = many((at) => ({ calls: [{ name: "fail", input: { at } }] }));
    const { agent } = await bench.agent(steps, strict, [fail]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ reason: "GUARDRAIL_TOOL_FAILURES" });
    expect(runCount).toBe(8);
  });

  it("is ended within the step that goes round: what has not started does not, and has its result", async () => {
    const call = { name: "look", input: {} };
    const steps = [1, 1, 1, 1, 40].map((length) => ({ calls: Array.from({ length }, () => call) }));
    const { agent } = await bench.agent(steps, { ...strict, toolConcurrency: 1 }, [look]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ reason: "GUARDRAIL_IDENTICAL_CALLS" });
    expect(runCount).toBe(5);
    const all = await results();
    expect(all).toHaveLength(44);
    expect(all.at(-1)).toMatchObject({ status: "interrupted", output: expect.stringContaining("repeating itself") });
  });

  it("hears what 41 calls of its first step failed with, and may do otherwise", async () => {
    const calls = Array.from({ length: 41 }, (_, at) => ({ name: "fail", input: { at } }));
    const { agent, model } = await bench.agent([{ calls }, { text: "I see." }], strict, [fail]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "I see." });
    expect(JSON.stringify(model.requests[1]?.prompt).match(/"type":"tool-result"/g)).toHaveLength(41);
  });

  it("control: without hard stops its model is told, and nothing but the iterations bounds it", async () => {
    const steps = many(() => ({ calls: [{ name: "look", input: {} }] }));
    const { agent, model } = await bench.agent(steps, { maxIterations: 20 }, [look]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ reason: "MAX_ITERATIONS" });
    expect(runCount).toBe(20);
    expect(JSON.stringify(model.requests.at(-1)?.prompt)).toContain("Repeating it will not help");
  });

  it("begins to count anew with the next message, since somebody looked at it", async () => {
    const steps = many(() => ({ calls: [{ name: "look", input: {} }] }));
    const { agent } = await bench.agent(steps, strict, [look]);
    await bench.finished(agent.run("s", "go"));
    await bench.finished(agent.run("s", "go on"));
    expect(runCount).toBe(10);
  });

  it("that another process goes on with is judged on from what is stored: a restart gives nothing back", async () => {
    const { agent } = await bench.agent(
      [...many(() => ({ calls: [{ name: "look", input: {} }] })).slice(0, 4), { text: "hm" }],
      strict,
      [look],
    );
    const turn = agent.run("s", "go");
    await bench.finished(turn);
    const [first] = (await bench.store.transcript.load("s")).entries;
    const input = await bench.store.inbox.read("s", turn.inputId);
    if (!input || !first) throw new Error("The turn left nothing.");
    const { soFar } = await new Conversations(bench.store, "m").upTo(
      { ...input, state: "taken", turnId: first.turnId },
      0,
    );
    const { guardrails, stepCount, callIds, usage } = turnSoFar(soFar, toolSet([look]), { hardStop: true });
    expect(
      guardrails.observe({ callId: "next", name: "look", input: {} }, { status: "ok", output: page }),
    ).toMatchObject({
      halt: { rule: "identical-calls" },
    });
    expect([stepCount, [...callIds], usage.outputTokens]).toEqual([5, ["call-1", "call-2", "call-3", "call-4"], 25]);
  });
});

describe("a cap on a tool", () => {
  it("holds for calls that run at once, and what it refuses has its result", async () => {
    const calls = Array.from({ length: 60 }, (_, at) => ({ name: "web_search", input: { at } }));
    const { agent } = await bench.agent([{ calls }, { text: "enough" }], {}, [search]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered" });
    expect(runCount).toBe(50);
    expect((await results()).filter(({ status }) => status === "denied")).toHaveLength(10);
  });

  it("does not count calls that did not run", async () => {
    const wrong = Array.from({ length: 60 }, () => ({ name: "web_search", input: { at: "x" } }));
    const right = [{ name: "web_search", input: { at: 1 } }];
    const { agent } = await bench.agent([{ calls: wrong }, { calls: right }, { text: "ok" }], {}, [search]);
    await bench.finished(agent.run("s", "go"));
    expect(runCount).toBe(1);
  });
});

describe("a turn's budget", () => {
  const loop = many((at) => ({ calls: [{ name: "web_search", input: { at } }] }));

  it("of tokens ends it before the next model call, as failed", async () => {
    const { agent, model } = await bench.agent(loop, { budget: { tokens: 40 } }, [search]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({
      outcome: "failed",
      reason: "TURN_BUDGET",
      detail: expect.stringContaining("used 45 tokens of the 40"),
    });
    expect(model.requests).toHaveLength(3);
  });

  it("of money is priced by the caller, and an answer that uses it up is an answer", async () => {
    const costOf = ({ inputTokens = 0 }: { readonly inputTokens?: number }): number => inputTokens / 100;
    const { agent, model } = await bench.agent(
      [...loop.slice(0, 1), { text: "done" }],
      { budget: { cost: 0.2, costOf } },
      [search],
    );
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "done" });
    expect(model.requests).toHaveLength(2);
  });

  it.each<[string, AgentOptions]>([
    ["budget.costOf", { budget: { cost: 1 } }],
    ["budget.tokens", { budget: { tokens: 0.5 } }],
    ["guardrails.hardStop", { guardrails: { hardStop: "yes" as never } }],
    ["guardrails.soft", { guardrails: { soft: true } as never }],
  ])("is checked when the agent is made: %s", async (option, options) => {
    await expect(bench.agent([], options)).rejects.toThrow(option);
  });
});
