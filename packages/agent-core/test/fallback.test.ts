import type { LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { CodedError } from "@turnkeeper/kernel";
import { cacheScope, withFallback } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { TurnEvent } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedModel, ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

const failure = (code: string, retryable = false, retryAfterMs?: number): ScriptedStep => ({
  fail: new CodedError(code, `It failed with ${code}.`, {
    context: { retryable, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
  }),
});

const look = defineTool({
  name: "look",
  description: "Looks.",
  input: z.object({}),
  execute: async () => "a line",
});

/** Two models as one, and the events of a turn on them. */
async function turnOn(
  first: ScriptedModel,
  second: ScriptedModel,
): Promise<{ events: TurnEvent[]; run: (text: string) => Promise<TurnEvent[]> }> {
  const agent = await bench.agentOn({ ...withFallback(first, second), requests: first.requests }, {}, [look]);
  const run = async (text: string): Promise<TurnEvent[]> => {
    const turn = agent.run("s", text);
    const events = bench.eventsOf(turn);
    await bench.finished(turn);
    return events;
  };
  return { events: await run("go"), run };
}

const typesOf = (events: readonly TurnEvent[]): string[] =>
  events.map(({ type }) => type).filter((type) => type.startsWith("model."));

describe("a model that cannot answer", () => {
  it.each(["MODEL_AUTH", "MODEL_QUOTA", "MODEL_NOT_FOUND", "MODEL_BAD_RESPONSE", "MODEL_CREDENTIAL_INVALID"])(
    "for %s gives way to the next one at once, which is said, and its id stands with the answer",
    async (code) => {
      const [first, second] = [scriptedModel([failure(code)], "a/one"), scriptedModel([{ text: "Here." }], "b/two")];
      const { events } = await turnOn(first, second);
      expect(typesOf(events)).toEqual(["model.fallback"]);
      expect(events.find(({ type }) => type === "model.fallback")).toMatchObject({
        from: "a/one",
        to: "b/two",
        reason: `It failed with ${code}.`,
      });
      expect(events.at(-1)).toMatchObject({ outcome: "answered", text: "Here." });
      const { entries } = await bench.store.transcript.load("s");
      expect(entries.at(-1)?.body).toMatchObject({ role: "assistant", model: "b/two" });
    },
  );

  it("for a while is asked again first, and gives way when that does not help", async () => {
    const overloaded = failure("MODEL_OVERLOADED", true);
    const first = scriptedModel([overloaded, overloaded, overloaded], "a/one");
    const { events } = await turnOn(first, scriptedModel([{ text: "Here." }], "b/two"));
    expect(typesOf(events)).toEqual(["model.retry", "model.retry", "model.fallback"]);
  });

  it("and asks for a longer wait than a turn may take gives way at once", async () => {
    const first = scriptedModel([failure("MODEL_RATE_LIMITED", true, 600_000)], "a/one");
    const { events } = await turnOn(first, scriptedModel([{ text: "Here." }], "b/two"));
    expect(typesOf(events)).toEqual(["model.fallback"]);
  });

  it.each(["MODEL_BAD_REQUEST", "MODEL_CLOSED", "MODEL_FAILED"])(
    "for %s ends the turn: another one would not do better",
    async (code) => {
      const second = scriptedModel([{ text: "Here." }], "b/two");
      const { events } = await turnOn(scriptedModel([failure(code)], "a/one"), second);
      expect(typesOf(events)).toEqual([]);
      expect(events.at(-1)).toMatchObject({ outcome: "failed", reason: code });
      expect(second.requests).toHaveLength(0);
    },
  );

  it("with no other one left ends the turn with the last one's failure", async () => {
    const [first, second] = [
      scriptedModel([failure("MODEL_AUTH")], "a/one"),
      scriptedModel([failure("MODEL_QUOTA")], "b/two"),
    ];
    const { events } = await turnOn(first, second);
    expect(events.at(-1)).toMatchObject({ outcome: "failed", reason: "MODEL_QUOTA" });
  });
});

const broken = new CodedError("MODEL_UNREACHABLE", "The connection broke.", { context: { retryable: false } });
const begun = (type: "text" | "reasoning"): LanguageModelV3StreamPart[] => [
  { type: `${type}-start`, id: "t" },
  { type: `${type}-delta`, id: "t", delta: "First I" },
];

it.each(["text", "reasoning"] as const)("a model of which %s was seen does not give way", async (type) => {
  const second = scriptedModel([{ text: "Here." }], "b/two");
  const { events } = await turnOn(scriptedModel([{ parts: begun(type), error: broken }], "a/one"), second);
  expect(typesOf(events)).toEqual([]);
  expect(events.at(-1)).toMatchObject({ outcome: "failed", reason: "MODEL_UNREACHABLE" });
  expect(second.requests).toHaveLength(0);
});

it("the rest of a cut answer is not asked of another model", async () => {
  const finish = { inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined } };
  const cut: LanguageModelV3StreamPart = {
    type: "finish",
    usage: { ...finish, outputTokens: { total: 1, text: 1, reasoning: undefined } },
    finishReason: { unified: "length", raw: "length" },
  };
  const first = scriptedModel([{ parts: [...begun("text"), cut] }, failure("MODEL_AUTH")], "a/one");
  const second = scriptedModel([{ text: "Here." }], "b/two");
  await turnOn(first, second);
  expect(second.requests).toHaveLength(0);
});

it("a fallback answers for the rest of its turn, and the next turn begins with the first model", async () => {
  const signed = (id: string): LanguageModelV3StreamPart[] => [
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "Hm." },
    { type: "reasoning-end", id: "r", providerMetadata: { own: { signature: id } } },
    { type: "tool-call", toolCallId: `c-${id}`, toolName: "look", input: "{}" },
    {
      type: "finish",
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 1, text: 1, reasoning: undefined },
      },
      finishReason: { unified: "tool-calls", raw: "tool_use" },
    },
  ];
  const first = scriptedModel([{ parts: signed("one") }, failure("MODEL_AUTH"), { text: "Mine again." }], "a/one");
  const second = scriptedModel([{ parts: signed("two") }, { text: "Done." }], "b/two");
  const { events, run } = await turnOn(first, second);
  expect(events.at(-1)).toMatchObject({ outcome: "answered", text: "Done." });
  expect(typesOf(events)).toEqual(["model.fallback"]);
  // What one model signed is never sent to the other, and each gets its own back.
  expect(JSON.stringify(second.requests[0]?.prompt)).not.toContain("signature");
  expect(JSON.stringify(second.requests[1]?.prompt)).toContain('"signature":"two"');
  expect(JSON.stringify(second.requests[1]?.prompt)).not.toContain('"signature":"one"');
  const next = await run("and now?");
  expect(next.at(-1)).toMatchObject({ outcome: "answered", text: "Mine again." });
  expect(JSON.stringify(first.requests[2]?.prompt)).toContain('"signature":"one"');
  expect(JSON.stringify(first.requests[2]?.prompt)).not.toContain('"signature":"two"');
});

describe("a request", () => {
  it("says which conversation's cache it belongs to: the session's, in every turn", async () => {
    const { agent, model } = await bench.agent([{ text: "One." }, { text: "Two." }, { text: "Other." }]);
    for (const session of ["s", "s", "other"]) await bench.finished(agent.run(session, "go"));
    const scopes = model.requests.map(({ providerOptions }) => providerOptions?.["turnkeeper"]?.["cacheScope"]);
    expect(scopes).toEqual(["s", "s", "other"].map((sessionId) => cacheScope({ sessionId })));
  });
});

it("a request belongs to the cache of the conversation that the application declares, if it can say", async () => {
  const declared = { source: "app", key: "ticket-1", generation: 2 };
  const conversationOf = (sessionId: string): typeof declared | undefined => {
    if (sessionId === "unsure") throw new CodedError("COUNT_UNREAD", "The count cannot be read.");
    return sessionId === "declared" ? declared : undefined;
  };
  const { agent, model } = await bench.agent([{ text: "1" }, { text: "2" }, { text: "3" }], { conversationOf });
  const sessions = ["declared", "silent", "unsure"];
  for (const session of sessions)
    expect(await bench.finished(agent.run(session, "go"))).toMatchObject({ outcome: "answered" });
  expect(model.requests.map(({ providerOptions }) => providerOptions?.["turnkeeper"]?.["cacheScope"])).toEqual([
    cacheScope({ sessionId: "anything", declared }),
    cacheScope({ sessionId: "silent" }),
    cacheScope({ sessionId: "unsure" }),
  ]);
});

describe("usage", () => {
  it("counts what a cache gave and took, and costs what the model's price makes of it, summed over a turn", async () => {
    const counted: LanguageModelV3StreamPart = {
      type: "finish",
      usage: {
        inputTokens: { total: 1000, noCache: 100, cacheRead: 600, cacheWrite: 300 },
        outputTokens: { total: 200, text: 150, reasoning: 50 },
      },
      finishReason: { unified: "stop", raw: "stop" },
    };
    const price = { inputPerMillion: 10, cachedInputPerMillion: 1, cacheWritePerMillion: 12.5, outputPerMillion: 50 };
    const call: LanguageModelV3StreamPart = { type: "tool-call", toolCallId: "c", toolName: "look", input: "{}" };
    const model = scriptedModel([{ parts: [call, counted] }, { parts: [...begun("text"), counted] }]);
    const agent = await bench.agentOn({ ...model, price }, {}, [look]);
    const finished = await bench.finished(agent.run("s", "go"));
    const each = 0.001 + 0.0006 + 0.00375 + 0.01;
    expect(finished.usage).toMatchObject({
      inputTokens: 2000,
      cachedInputTokens: 1200,
      cacheWriteTokens: 600,
      outputTokens: 400,
      reasoningTokens: 100,
    });
    expect(finished.usage?.cost).toBeCloseTo(2 * each, 10);
  });

  it("is bounded in what it may cost by the model's own price", async () => {
    const steps = Array.from({ length: 4 }, () => ({ calls: [{ name: "look", input: {} }] }));
    const model = { ...scriptedModel(steps), price: { inputPerMillion: 10_000, outputPerMillion: 0 } };
    const agent = await bench.agentOn(model, { budget: { cost: 0.15 } }, [look]);
    const finished = await bench.finished(agent.run("s", "go"));
    expect(finished).toMatchObject({ outcome: "failed", reason: "TURN_BUDGET", usage: { cost: 0.2 } });
  });

  it("has no cost where nobody gave a price", async () => {
    const { agent } = await bench.agent([{ text: "Hello." }]);
    const { usage } = await bench.finished(agent.run("s", "go"));
    expect(usage).toEqual({ inputTokens: 10, outputTokens: 5 });
  });
});
