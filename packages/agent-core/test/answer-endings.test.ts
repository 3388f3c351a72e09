import type { LanguageModelV3FinishReason, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { CodedError } from "@turnkeeper/kernel";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  input: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => a + b,
});

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};
const ended = (unified: LanguageModelV3FinishReason["unified"], raw = "stop"): LanguageModelV3StreamPart => ({
  type: "finish",
  usage,
  finishReason: { unified, raw },
});
const said = (text: string, id = "t"): LanguageModelV3StreamPart[] => [
  { type: "text-start", id },
  { type: "text-delta", id, delta: text },
  { type: "text-end", id },
];
const thought = (text: string): LanguageModelV3StreamPart[] => [
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: text },
  { type: "reasoning-end", id: "r" },
];
const delayed = (ms: number): Promise<void> => new Promise((resolve) => void bench.host.timers.after(ms, resolve));
const cut = (text: string): ScriptedStep => ({ parts: [...said(text), ended("length")] });
const cutStream = new CodedError("MODEL_STREAM_CUT", "The stream broke off.", { context: { retryable: true } });

describe("an answer that was cut", () => {
  it("at the output limit is gone on with where it stops, and is told as one", async () => {
    const { agent, model } = await bench.agent([cut("Once upon a ti"), cut("me there was "), { text: "an end." }]);
    const turn = agent.run("s", "tell me");
    const finished = await bench.finished(turn);
    expect(finished).toMatchObject({ outcome: "answered", text: "Once upon a time there was an end." });
    expect(finished.detail).toBeUndefined();
    expect(model.requests[1]?.prompt.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(JSON.stringify(model.requests[2]?.prompt.at(-1))).toContain("was cut off there");
    // Whoever asks again with the same id hears the same, from what is stored.
    const again = await bench.finished(agent.run("s", "tell me", { inputId: turn.inputId }));
    expect(again).toMatchObject({ outcome: "answered", text: finished.text });
    // What was cut is no question to the next turn.
    const { entries } = await bench.store.transcript.load("s");
    expect(entries.map(({ body }) => (body.role === "assistant" ? body.partial === true : body.role))).toEqual([
      "user",
      true,
      true,
      false,
    ]);
  });

  it("again and again is asked for four times more, kept as partial, and said not to be whole", async () => {
    const { agent, model } = await bench.agent(Array.from({ length: 9 }, (_, index) => cut(`${index} `)));
    expect(await bench.finished(agent.run("s", "tell me"))).toMatchObject({
      outcome: "answered",
      text: "0 1 2 3 4 ",
      detail: expect.stringContaining("not whole"),
    });
    expect(model.requests).toHaveLength(5);
    expect((await bench.store.transcript.load("s")).entries.at(-1)?.body).toMatchObject({ partial: true });
  });

  it("by a broken stream is gone on with after a pause", async () => {
    const { agent, model } = await bench.agent([
      { parts: said("Half an ans").slice(0, 2), error: cutStream },
      { text: "wer." },
    ]);
    const turn = agent.run("s", "tell me");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "Half an answer." });
    expect((await bench.eventsOf(turn)).filter(({ type }) => type === "model.retry")).toHaveLength(1);
    expect(model.requests).toHaveLength(2);
  });

  it("by a stream that breaks each time ends as failed, with all of it kept", async () => {
    const broken = Array.from({ length: 9 }, (_, index): ScriptedStep => ({
      parts: said(`${index} `).slice(0, 2),
      error: cutStream,
    }));
    const { agent, model } = await bench.agent(broken);
    expect(await bench.finished(agent.run("s", "tell me"))).toMatchObject({
      outcome: "failed",
      reason: "MODEL_STREAM_CUT",
      text: "0 1 2 3 4 ",
    });
    expect(model.requests).toHaveLength(5);
  });

  it("is not gone on with after a stop during the pause", async () => {
    const slow = new CodedError("MODEL_OVERLOADED", "Busy.", { context: { retryable: true, retryAfterMs: 30_000 } });
    const { agent, model } = await bench.agent([{ parts: said("Half").slice(0, 2), error: slow }, { text: "never" }]);
    const turn = agent.run("s", "tell me");
    await bench.host.advance(100);
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop", text: "Half" });
    expect(model.requests).toHaveLength(1);
  });

  it("comes back no earlier than the provider asked, and not together with others that failed with it", async () => {
    const busy = (retryAfterMs: number): ScriptedStep => ({
      fail: new CodedError("MODEL_OVERLOADED", "Busy.", { context: { retryable: true, retryAfterMs } }),
    });
    const delays: number[] = [];
    for (const sessionId of ["a", "b", "c"]) {
      const { agent } = await bench.agent([busy(8000), { text: "fine" }]);
      const turn = agent.run(sessionId, "hi");
      await bench.finished(turn);
      for (const event of await bench.eventsOf(turn)) if (event.type === "model.retry") delays.push(event.delayMs);
    }
    expect(delays).toHaveLength(3);
    expect(new Set(delays).size).toBe(3);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(8000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(10_000);
    // What was asked decides whether it is waited for, and not what is added.
    const patient = await bench.agent([busy(60_000), { text: "fine" }]);
    expect(await bench.finished(patient.agent.run("d", "hi"))).toMatchObject({ text: "fine" });
    const refused = await bench.agent([busy(60_001), { text: "never" }]);
    expect(await bench.finished(refused.agent.run("e", "hi"))).toMatchObject({ reason: "MODEL_OVERLOADED" });
  });

  it("is waited for as long as its provider asks, and only what is silent beyond that is a stall", async () => {
    const busy: ScriptedStep = {
      fail: new CodedError("MODEL_OVERLOADED", "Busy.", { context: { retryable: true, retryAfterMs: 2500 } }),
    };
    const answer = [...said("fine"), ended("stop")];
    const options = { liveness: { timeoutMs: 3000, pollMs: 100 } };
    const { agent } = await bench.agent([busy, busy, { parts: answer, between: () => delayed(1000) }], options);
    expect(await bench.finished(agent.run("s", "hi"))).toMatchObject({ outcome: "answered", text: "fine" });
    const silent = await bench.agent([busy, busy, { parts: answer, between: () => new Promise(() => {}) }], options);
    expect(await bench.finished(silent.agent.run("t", "hi"))).toMatchObject({
      outcome: "interrupted",
      reason: "stalled",
    });
  });

  it("does not give back its provider's fields, which are not whole", async () => {
    const parts = said("Half");
    const signed = parts.map((part) => ({ ...part, providerMetadata: { openai: { itemId: "msg_1" } } }));
    const { agent, model } = await bench.agent([
      { parts: [...signed, ended("length")] as LanguageModelV3StreamPart[] },
      { text: " and whole" },
      { text: "more" },
    ]);
    await bench.finished(agent.run("s", "tell me"));
    await bench.finished(agent.run("s", "more"));
    expect(JSON.stringify(model.requests.slice(1))).not.toContain("msg_1");
  });
});

describe("an empty answer", () => {
  const nothing: ScriptedStep = { parts: [ended("stop")] };

  it.each<[string, ScriptedStep]>([
    ["without anything", nothing],
    ["of white space", { parts: [...said(" \n "), ended("stop")] }],
    ["of reasoning alone", { parts: [...thought("Hm."), ended("stop")] }],
    ["whose stream breaks while it reasons", { parts: thought("Hm."), error: cutStream }],
  ])("%s is asked for again, and is no end of the turn", async (_what, step) => {
    const { agent, model } = await bench.agent([step, step, { text: "There." }]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "There." });
    expect(model.requests).toHaveLength(3);
  });

  it("that comes 42 times is said after the third", async () => {
    const { agent, model } = await bench.agent(Array.from({ length: 42 }, () => nothing));
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "failed", reason: "MODEL_EMPTY" });
    expect(model.requests).toHaveLength(3);
    expect(await bench.store.transcript.load("s")).toMatchObject({ entries: [{ body: { role: "user" } }] });
  });

  it.each<[LanguageModelV3FinishReason["unified"], RegExp]>([
    ["length", /output limit/],
    ["content-filter", /filter/],
  ])("because of %s is said at once: the same request would end the same", async (reason, detail) => {
    const { agent, model } = await bench.agent([{ parts: [...thought("Hm."), ended(reason)] }]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({
      outcome: "failed",
      reason: "MODEL_EMPTY",
      detail: expect.stringMatching(detail),
    });
    expect(model.requests).toHaveLength(1);
  });
});

describe("the finish reason", () => {
  const call: LanguageModelV3StreamPart = {
    type: "tool-call",
    toolCallId: "c",
    toolName: "add",
    input: '{"a":1,"b":2}',
  };

  it.each(["stop", "other", "length"] as const)("%s does not hide a call that came", async (reason) => {
    const { agent } = await bench.agent([{ parts: [call, ended(reason)] }, { text: "3" }], {}, [add]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "3" });
  });

  it("tool-calls without any is an answer", async () => {
    const { agent, model } = await bench.agent([{ parts: [...said("Done."), ended("tool-calls")] }]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "Done." });
    expect(model.requests).toHaveLength(1);
  });
});

describe("a tool that the provider runs itself", () => {
  const search = (id: string, input = '{"query":"weather"}'): LanguageModelV3StreamPart[] => [
    {
      type: "tool-call",
      toolCallId: id,
      toolName: "web_search",
      input,
      providerExecuted: true,
      providerMetadata: { anthropic: { kind: "server" } },
    },
    {
      type: "tool-result",
      toolCallId: id,
      toolName: "web_search",
      result: { title: "Sunny" },
      providerMetadata: { anthropic: { token: "opaque" } },
    },
  ];

  it("is not run here, has its result, and goes back to its provider as it came", async () => {
    const { agent, model } = await bench.agent(
      [{ parts: [...search("srv_1"), ...said("It is sunny."), ended("tool-calls")] }, { text: "Yes." }],
      {},
      [add],
    );
    const turn = agent.run("s", "weather?");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "It is sunny." });
    expect((await bench.eventsOf(turn)).filter(({ type }) => type.startsWith("tool."))).toEqual([]);
    await bench.finished(agent.run("s", "sure?"));
    expect(model.requests[1]?.prompt[1]?.content).toEqual([
      {
        type: "tool-call",
        toolCallId: "srv_1",
        toolName: "web_search",
        input: { query: "weather" },
        providerExecuted: true,
        providerOptions: { anthropic: { kind: "server" } },
      },
      {
        type: "tool-result",
        toolCallId: "srv_1",
        toolName: "web_search",
        output: { type: "json", value: { title: "Sunny" } },
        providerOptions: { anthropic: { token: "opaque" } },
      },
      { type: "text", text: "It is sunny." },
    ]);
  });

  it("is left out for another model, and where its result never came", async () => {
    const { agent } = await bench.agent([{ parts: [...search("srv_1"), ...said("It is sunny."), ended("stop")] }]);
    await bench.finished(agent.run("s", "weather?"));
    const { entries } = await bench.store.transcript.load("s");
    const { Conversation } = await import("../src/conversation.ts");
    const bodies = entries.map(({ body }) => body);
    expect(JSON.stringify(new Conversation("other/model", bodies).prompt(undefined))).not.toMatch(/web_search|opaque/);
    const half = structuredClone(bodies) as { parts?: { output?: unknown }[] }[];
    for (const { parts } of half) for (const part of parts ?? []) delete part.output;
    expect(JSON.stringify(new Conversation("scripted/model", half as never).prompt(undefined))).not.toContain("srv_1");
  });

  it("as the last thing that came is no answer: the model is asked what it makes of it, in bounds", async () => {
    const paused: ScriptedStep = { parts: [...search("srv_1"), ended("other", "pause_turn")] };
    const { agent, model } = await bench.agent([paused, { text: "Sunny." }]);
    expect(await bench.finished(agent.run("s", "weather?"))).toMatchObject({ outcome: "answered", text: "Sunny." });
    expect(model.requests).toHaveLength(2);
    const endless = await bench.agent(Array.from({ length: 90 }, () => paused));
    expect(await bench.finished(endless.agent.run("t", "weather?"))).toMatchObject({ outcome: "answered", text: "" });
    expect(endless.model.requests).toHaveLength(5);
  });
});

describe("arguments that stop coming", () => {
  const begun: LanguageModelV3StreamPart[] = [
    { type: "tool-input-start", id: "c", toolName: "add" },
    { type: "tool-input-delta", id: "c", delta: '{"a"' },
  ];

  /** A stream that says these and then nothing more. */
  const stuck = (parts: readonly LanguageModelV3StreamPart[]): ScriptedStep => ({ parts, isEndless: true });

  it("end their request after their own bound, and the call is asked for again", async () => {
    const call = { calls: [{ name: "add", input: { a: 1, b: 2 } }] };
    const { agent } = await bench.agent([stuck(begun), call, { text: "3" }], {}, [add]);
    const turn = agent.run("s", "go");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "3" });
    expect((await bench.eventsOf(turn)).find(({ type }) => type === "model.retry")).toMatchObject({
      reason: expect.stringContaining("sent nothing for 300 s"),
    });
  });

  it.each([
    ["nothing", ""],
    ["an empty object", "{}"],
  ])("end their request as well where the call was named and %s came of them", async (_what, delta) => {
    const [named] = begun as [LanguageModelV3StreamPart];
    const empty = stuck([named, { type: "tool-input-delta", id: "c", delta }]);
    const { agent } = await bench.agent([empty, { text: "Never mind." }], {}, [add]);
    const turn = agent.run("s", "go");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "Never mind." });
    expect((await bench.eventsOf(turn)).filter(({ type }) => type.startsWith("tool."))).toEqual([]);
    expect(await bench.store.transcript.load("s")).toMatchObject({
      entries: [{ body: { role: "user" } }, { body: { role: "assistant" } }],
    });
  });

  it("control: where no arguments have begun, the bound is the turn's own, and the turn is stopped", async () => {
    const { agent } = await bench.agent([stuck([]), { text: "never" }], {}, [add]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "interrupted", reason: "stalled" });
  });

  it.each([
    ["are not missed while they come, however long they are", 250_000],
    ["are not missed where they came while nobody could read them, and their time ran out with that", 300_000],
  ])("%s", async (_title, pauseMs) => {
    const { timers } = bench.host;
    // It comes behind the timers that were due by then: a process that was stopped runs those first.
    const between = (): Promise<void> => new Promise((resolve) => void timers.after(pauseMs, resolve));
    const { agent } = await bench.agent(
      [
        {
          parts: [
            ...begun,
            { type: "tool-input-delta", id: "c", delta: ':1,"b":2}' },
            { type: "tool-input-end", id: "c" },
            { type: "tool-call", toolCallId: "c", toolName: "add", input: '{"a":1,"b":2}' },
            ended("tool-calls"),
          ],
          between,
        },
        { text: "3" },
      ],
      {},
      [add],
    );
    const turn = agent.run("s", "go");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "3" });
    expect((await bench.eventsOf(turn)).map(({ type }) => type)).not.toContain("model.retry");
  });
});
