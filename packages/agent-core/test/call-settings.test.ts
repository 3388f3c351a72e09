import { CodedError } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { JsonValue, ToolBody } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { answerApproval, createAgent, defineTool } from "../src/index.ts";
import type { Agent, CallerTool, CallSettings, TurnEvent } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

const weather: CallerTool = {
  name: "weather",
  description: "The weather.",
  inputSchema: { type: "object", properties: { city: { type: "string" } } },
};
const settings = { tools: [weather] };
const looked = { description: "Looks.", input: z.strictObject({}), execute: async () => "seen" };
const look = defineTool({ ...looked, name: "look" });
const asks = (id: string) => ({ id, name: "weather", input: { city: id } });

async function results(): Promise<readonly ToolBody[]> {
  const records = await bench.store.sessions.records("s");
  if (!records) throw new Error("There is no session s.");
  expect(verifyRecords(records)).toEqual([]);
  return records.entries.flatMap(({ body }) => (body.role === "tool" ? [body] : []));
}

function begin(agent: Agent): { readonly events: TurnEvent[]; readonly turn: ReturnType<Agent["run"]> } {
  const turn = agent.run("s", "go", { inputId: "one", settings });
  const events: TurnEvent[] = [];
  void (async () => {
    for await (const event of turn) events.push(event);
  })();
  return { events, turn };
}

describe("a call's settings", () => {
  it("reach the model with each request of its turn, and no other's", async () => {
    const { agent, model } = await bench.agent(
      [{ calls: [{ name: "look", input: {} }] }, { text: "done" }, { text: "plain" }],
      { system: "You are kind." },
      [look],
    );
    const asked = {
      instructions: "Be short.",
      model: { temperature: 0.5, toolChoice: { type: "required" as const } },
    };
    await bench.finished(agent.run("s", "go", { settings: asked }));
    await bench.finished(agent.run("s", "again"));
    const said = model.requests.map(({ prompt, temperature, toolChoice }) => [
      prompt[0]?.content,
      temperature,
      toolChoice?.type,
    ]);
    expect(said).toEqual([
      ["You are kind.\n\nBe short.", 0.5, "required"],
      // A call that is forced once would be forced for ever.
      ["You are kind.\n\nBe short.", 0.5, undefined],
      ["You are kind.", undefined, undefined],
    ]);
  });

  it("end an answer where they limit it, and the turn says that it is not whole", async () => {
    const cut = {
      parts: [
        { type: "text-start" as const, id: "t" },
        { type: "text-delta" as const, id: "t", delta: "Once upon" },
        {
          type: "finish" as const,
          usage: {
            inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
            outputTokens: { total: 2, text: 2, reasoning: undefined },
          },
          finishReason: { unified: "length" as const, raw: "length" },
        },
      ],
    };
    const { agent, model } = await bench.agent([cut]);
    const finished = await bench.finished(agent.run("s", "go", { settings: { model: { maxOutputTokens: 2 } } }));
    expect(finished).toMatchObject({ outcome: "answered", reason: "output-limit", text: "Once upon" });
    expect(model.requests).toHaveLength(1);
  });

  it("share a prompt cache with whoever declares the same conversation", async () => {
    const { agent, model } = await bench.agent([{ text: "1" }, { text: "2" }, { text: "3" }]);
    const conversation = { source: "test", key: "k", generation: 0 };
    await bench.finished(agent.run("a", "go", { settings: { conversation } }));
    await bench.finished(agent.run("b", "go", { settings: { conversation } }));
    await bench.finished(agent.run("b", "go"));
    const [first, second, third] = model.requests.map(({ providerOptions }) => providerOptions?.["turnkeeper"]);
    expect(second).toEqual(first);
    expect(third).not.toEqual(first);
  });

  it("go on without a new message where the caller says so, and say nothing in its place", async () => {
    const { agent, model } = await bench.agent([{ text: "1" }, { text: "2" }]);
    await bench.finished(agent.run("s", "go"));
    expect(() => agent.run("s", "")).toThrow(CodedError);
    expect(await bench.finished(agent.run("s", "", { goesOn: true }))).toMatchObject({ outcome: "answered" });
    expect(JSON.stringify(model.requests[1]?.prompt)).toContain("Go on.");
  });
});

describe("a tool of the caller's", () => {
  it("suspends the turn over its calls, which go on with the results that the caller sends", async () => {
    const steps = [{ calls: [asks("a"), { id: "l", name: "look", input: {} }, asks("b")] }, { text: "done" }];
    const { agent, model } = await bench.agent(steps, {}, [look]);
    const { events, turn } = begin(agent);
    await bench.host.advance(50);
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual(["look", "weather"]);
    const asked = events.flatMap((event) => (event.type === "approval.requested" ? [event.callId] : []));
    expect(asked).toEqual(["a", "b"]);
    expect(await bench.store.leases.read("s")).toBeUndefined();
    expect((await results()).map(({ callId }) => callId)).toEqual(["l"]);
    await agent.answer("s", "a", { decision: "allow", output: "rain" });
    await agent.answer("s", "b", { decision: "allow", output: { sun: true } });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "done" });
    expect(await results()).toMatchObject([
      { callId: "l", output: "seen" },
      { callId: "a", status: "ok", output: "rain" },
      { callId: "b", status: "ok", output: { sun: true } },
    ]);
    expect(model.requests[1]?.tools?.map(({ name }) => name)).toEqual(["look", "weather"]);
  });

  it("PAIR-1: has a result for each call of a caller that never comes back, once the turn is stopped", async () => {
    const { agent } = await bench.agent([{ calls: [asks("a"), asks("b")] }]);
    const { turn } = begin(agent);
    await bench.host.advance(50);
    await agent.answer("s", "a", { decision: "allow", output: "rain" });
    turn.stop({ hard: true, by: "test" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", by: "test" });
    expect((await results()).map(({ callId, status }) => [callId, status])).toEqual([
      ["a", "ok"],
      ["b", "interrupted"],
    ]);
  });

  it("PAIR-1 control: without the stop that settles it a call has no result, and its turn stays open", async () => {
    const { agent } = await bench.agent([{ calls: [asks("a")] }]);
    begin(agent);
    await bench.host.advance(50);
    expect(await results()).toEqual([]);
    expect((await bench.store.turns.running("s"))[0]?.turn.state).toBe("suspended");
  });

  it("needs no approval: it waits for its result, which nobody can give by allowing it, and may be denied", async () => {
    const { agent } = await bench.agent([{ calls: [asks("a"), asks("b")] }, { text: "well" }]);
    const { events, turn } = begin(agent);
    await bench.host.advance(50);
    expect(events.filter(({ type }) => type === "approval.requested")).toMatchObject([
      { callId: "a", awaits: "result" },
      { callId: "b", awaits: "result" },
    ]);
    expect(await agent.answer("s", "a", { decision: "allow" })).toEqual({ kind: "nothing-asked" });
    await agent.answer("s", "a", { decision: "allow", output: null });
    await agent.answer("s", "b", { decision: "deny" });
    await bench.finished(turn);
    expect(await results()).toMatchObject([
      { callId: "a", status: "ok", output: null },
      { callId: "b", status: "denied" },
    ]);
  });

  it("is known by its result to a process that never had it", async () => {
    const { agent } = await bench.agent([{ calls: [asks("a")] }]);
    begin(agent);
    await bench.host.advance(50);
    await agent.close();
    const presence = await openProcessPresence({ host: bench.host });
    const answer = { sessionId: "s", callId: "a", decision: "allow" as const, by: "elsewhere", output: "rain" };
    expect(await answerApproval({ store: bench.store, presence }, answer)).toMatchObject({ kind: "recorded" });
    const model = scriptedModel([{ text: "done" }]);
    const { store, host, scheduler } = bench;
    const other = await createAgent({ store, host, scheduler, model });
    expect(await bench.finished(other.run("s", "go", { inputId: "one" }))).toMatchObject({ text: "done" });
    expect(await results()).toMatchObject([{ callId: "a", status: "ok", output: "rain" }]);
    await other.close();
  });

  it("is refused with a name of the agent's, before anything is stored", async () => {
    const { agent } = await bench.agent([], {}, [look]);
    const run = () => agent.run("s", "go", { settings: { tools: [{ name: "look" }] } });
    expect(run).toThrow(expect.objectContaining({ code: "TOOL_DUPLICATE" }));
    expect(await bench.store.sessions.read("s")).toBeUndefined();
  });
});

describe("the settings of an input whose process is gone", () => {
  const asked = { instructions: "Be short.", tools: [{ name: "weather" }], model: { seed: 7 } };
  const gone = { runnerId: "gone", instanceId: "gone", host: "elsewhere", bootId: "gone", pid: 1 };

  /** What the first request of a model was asked with. */
  const askedWith = ({ requests: [request] }: ReturnType<typeof scriptedModel>): unknown =>
    request && [request.prompt[0]?.content, request.tools?.map(({ name }) => name), request.seed];

  async function leftBehind(settings: JsonValue): Promise<void> {
    const input = { sessionId: "s", inputId: "one", text: "go", onBusy: "wait" } as const;
    await bench.store.inbox.offer({ ...input, runner: gone, settings });
    await bench.store.inbox.abandon("s", "gone");
  }

  it("are those that its turn is asked with wherever it runs", async () => {
    await leftBehind(asked);
    const { agent, model } = await bench.agent([{ calls: [asks("a")] }], { system: "You are kind." });
    expect(await agent.runWaiting()).toBe(1);
    await bench.host.advance(50);
    expect(askedWith(model)).toEqual(["You are kind.\n\nBe short.", ["weather"], 7]);
    expect((await bench.store.turns.running("s"))[0]?.turn).toMatchObject({
      state: "suspended",
      approvals: [{ callId: "a", name: "weather" }],
    });
  });

  it("are those that its turn goes on with, though whoever has the results knows no tool and asks with none", async () => {
    const { agent } = await bench.agent([{ calls: [asks("a")] }]);
    agent.run("s", "go", { inputId: "one", settings: asked });
    await bench.host.advance(50);
    await agent.close();
    const answer = { sessionId: "s", callId: "a", decision: "allow" as const, output: "rain" };
    const presence = await openProcessPresence({ host: bench.host });
    await answerApproval({ store: bench.store, presence }, { ...answer, by: "a process that died then" });
    const risky = defineTool({ ...looked, name: "risky", needsApproval: true });
    const other = await bench.agent([{ calls: [{ id: "r", name: "risky", input: {} }] }, { text: "wet" }], {}, [risky]);
    expect(await other.agent.runWaiting()).toBe(1);
    await bench.host.advance(500);
    expect(askedWith(other.model)).toEqual(["Be short.", ["risky", "weather"], 7]);
    expect(await bench.store.inbox.read("s", "one")).toMatchObject({ state: "settled", end: "answered" });
    // Nobody is there to be asked, as nobody was where it was accepted.
    expect(await results()).toMatchObject([{ callId: "a" }, { callId: "r", status: "denied" }]);
  });

  it("fail its turn where they are not what an agent stores, as an import may bring them", async () => {
    await leftBehind({ tools: 5 });
    const { agent } = await bench.agent([]);
    expect(await bench.finished(agent.run("s", "go", { inputId: "one" }))).toMatchObject({
      outcome: "failed",
      reason: "SETTINGS_INVALID",
    });
  });

  it("are refused before anything is stored where they are more than an input may have, or no JSON", async () => {
    const { agent } = await bench.agent([], { inputBytesMax: 1000 });
    const run = (instructions: unknown) => () => agent.run("s", "go", { settings: { instructions } as CallSettings });
    expect(run("x".repeat(1000))).toThrow(expect.objectContaining({ code: "INPUT_TOO_LARGE" }));
    expect(run(1n)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    expect(await bench.store.sessions.read("s")).toBeUndefined();
  });
});

describe("the results of a caller's calls", () => {
  const minuteMs = 60_000;
  const endOf = async (): Promise<unknown> => {
    const records = await bench.store.sessions.records("s");
    const turn = records?.turns[0];
    return turn?.state === "ended" ? [turn.outcome, turn.reason] : turn?.state;
  };

  it("are waited for ten minutes; then the turn is stopped, its calls count as not run, and who comes later is told", async () => {
    const { agent } = await bench.agent([{ calls: [asks("a"), asks("b")] }]);
    const { turn } = begin(agent);
    await bench.host.advance(50);
    await agent.answer("s", "a", { decision: "allow", output: "rain" });
    await bench.host.advance(10 * minuteMs - 1000);
    expect(await endOf()).toBe("suspended");
    await bench.host.advance(minuteMs);
    expect(await endOf()).toEqual(["interrupted", "deadline"]);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "deadline" });
    expect((await results()).map(({ callId, status }) => [callId, status])).toEqual([
      ["a", "ok"],
      ["b", "interrupted"],
    ]);
    const late = await agent.answer("s", "b", { decision: "allow", output: "late" });
    expect(late).toEqual({ kind: "nothing-asked" });
  });

  it("go on with the turn when they come just in time", async () => {
    const { agent } = await bench.agent([{ calls: [asks("a")] }, { text: "done" }]);
    const { turn } = begin(agent);
    await bench.host.advance(10 * minuteMs - 1000);
    await agent.answer("s", "a", { decision: "allow", output: "rain" });
    await bench.host.advance(minuteMs);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "done" });
  });

  it("are waited for no longer where the process that asked is gone: any agent on the store ends the turn", async () => {
    const { agent } = await bench.agent([{ calls: [asks("a")] }]);
    agent.run("s", "go", { inputId: "one", settings: { ...settings, resultWaitMs: 5 * minuteMs } });
    await bench.host.advance(50);
    await agent.close();
    await bench.agent([]);
    await bench.host.advance(4 * minuteMs);
    expect(await endOf()).toBe("suspended");
    await bench.host.advance(2 * minuteMs);
    expect(await endOf()).toEqual(["interrupted", "deadline"]);
    expect(await bench.store.inbox.read("s", "one")).toMatchObject({ state: "settled", end: "interrupted" });
  });

  it("let a message that waits behind them go on, once they did not come", async () => {
    const { agent } = await bench.agent([{ calls: [asks("a")] }, { text: "next" }]);
    begin(agent);
    await bench.host.advance(50);
    const next = agent.run("s", "never mind");
    await bench.host.advance(11 * minuteMs);
    expect(await bench.finished(next)).toMatchObject({ outcome: "answered", text: "next" });
  });

  it("may be waited for as long as the caller says, and no nonsense of it is stored", async () => {
    const { agent } = await bench.agent([]);
    for (const resultWaitMs of [0, Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => agent.run("s", "go", { settings: { resultWaitMs } })).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
    expect(await bench.store.sessions.read("s")).toBeUndefined();
  });
});
