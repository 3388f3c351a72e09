import { verifyRecords } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
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

const explode = defineTool({
  name: "explode",
  description: "Throws.",
  input: z.object({}),
  execute: async () => {
    throw new Error("boom");
  },
});

async function resultsOf(sessionId: string): Promise<unknown[]> {
  const records = await bench.store.sessions.records(sessionId);
  expect(records && verifyRecords(records)).toEqual([]);
  return records?.entries.flatMap(({ body }) => (body.role === "tool" ? [body] : [])) ?? [];
}

describe("a tool call", () => {
  it("runs with checked arguments, and the model sees its result", async () => {
    const { agent, model } = await bench.agent(
      [{ calls: [{ name: "add", input: { a: 2, b: 3 } }] }, { text: "5" }],
      {},
      [add],
    );
    const turn = agent.run("s", "2 + 3?");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "5" });
    const events = await bench.eventsOf(turn);
    expect(events.filter((event) => event.type.startsWith("tool."))).toMatchObject([
      { type: "tool.started", callId: "call-1", name: "add", input: { a: 2, b: 3 } },
      { type: "tool.finished", callId: "call-1", name: "add", ok: true, output: 5, durationMs: 0 },
    ]);
    expect(model.requests[0]?.tools).toMatchObject([
      { name: "add", inputSchema: { type: "object", required: ["a", "b"] } },
    ]);
    expect(model.requests[1]?.prompt.at(-1)).toEqual({
      role: "tool",
      content: [{ type: "tool-result", toolCallId: "call-1", toolName: "add", output: { type: "json", value: 5 } }],
    });
  });

  it.each([
    ["a character of code 0", "a\u0000b"],
    ["half a character", "a\ud800"],
    ["more than an index can hold", "x".repeat(4000)],
    ["nothing", ""],
  ])("has an id of its own where its provider's is %s", async (_what, id) => {
    const { agent, model } = await bench.agent(
      [{ calls: [{ id, name: "add", input: { a: 2, b: 3 } }] }, { text: "5" }],
      {},
      [add],
    );
    expect(await bench.finished(agent.run("s", "2 + 3?"))).toMatchObject({ outcome: "answered" });
    expect(await resultsOf("s")).toMatchObject([{ callId: "call-1", output: 5 }]);
    expect(model.requests[1]?.prompt.at(-1)).toMatchObject({ content: [{ toolCallId: "call-1" }] });
  });

  it("rule 7.4: is stored before it runs", async () => {
    let storedRoles: string[] = [];
    const look = defineTool({
      name: "look",
      description: "Looks at the store.",
      input: z.object({}),
      execute: async () => {
        storedRoles = (await bench.store.transcript.load("s")).entries.map((entry) => entry.body.role);
        return "seen";
      },
    });
    const { agent } = await bench.agent([{ calls: [{ name: "look", input: {} }] }, { text: "ok" }], {}, [look]);
    await bench.finished(agent.run("s", "look"));
    expect(storedRoles).toEqual(["user", "assistant"]);
  });

  it.each([
    ["malformed JSON", { name: "add", input: '{"a": 1, "b": ' }, /not valid JSON/],
    ["a raw line break in a string", { name: "add", input: '{"a": "one\ntwo"}' }, /not valid JSON/],
    ["JSON that is no object", { name: "add", input: "[1, 2]" }, /not a JSON object/],
    ["a megabyte of nonsense", { name: "add", input: "x".repeat(1_000_000) }, /^.{1,1200}$/s],
    ["no arguments where some are needed", { name: "add", input: "" }, /do not fit: a: /],
    ["arguments that do not fit", { name: "add", input: { a: "x", b: 1 } }, /do not fit: a: /],
    ["an unknown tool", { name: "con structor", input: {} }, /no tool named "con structor"/],
    ["a tool that throws", { name: "explode", input: {} }, /boom/],
  ])("becomes an error the model sees, never a dead turn: %s", async (_what, call, message) => {
    const { agent, model } = await bench.agent([{ calls: [call] }, { text: "I see." }], {}, [add, explode]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "I see." });
    expect(await resultsOf("s")).toMatchObject([{ status: "error", output: expect.stringMatching(message) }]);
    expect(JSON.stringify(model.requests[1]?.prompt.at(-1))).toMatch(/error-text/);
  });

  it.each(["", "{}", "null", "  "])("without arguments may come as %j", async (input) => {
    const nothing = defineTool({
      name: "nothing",
      description: "Takes nothing.",
      input: z.object({}),
      execute: async () => "ran",
    });
    const { agent } = await bench.agent([{ calls: [{ name: "nothing", input }] }, { text: "ok" }], {}, [nothing]);
    await bench.finished(agent.run("s", "go"));
    expect(await resultsOf("s")).toMatchObject([{ status: "ok", output: "ran" }]);
  });

  it("whose arguments no provider would take back leaves them in the transcript in a form that all take", async () => {
    const steps = [{ calls: [{ name: "add", input: `["${"x".repeat(100_000)}"]` }] }, { text: "I see." }];
    const { agent, model } = await bench.agent(steps, {}, [add]);
    await bench.finished(agent.run("s", "go"));
    const [, answer] = (await bench.store.transcript.load("s")).entries;
    expect(answer?.body).toMatchObject({ parts: [{ input: { malformed_arguments: expect.any(String) } }] });
    expect(JSON.stringify(answer?.body).length).toBeLessThan(3000);
    // The scripted model refuses what a strict provider would.
    expect(model.requests).toHaveLength(2);
  });

  it("keeps its own id when a provider repeats one", async () => {
    const steps = [
      { calls: [{ id: "call_0", name: "add", input: { a: 1, b: 1 } }] },
      { calls: [{ id: "call_0", name: "add", input: { a: 2, b: 2 } }] },
      { text: "done" },
    ];
    const { agent } = await bench.agent(steps, {}, [add]);
    await bench.finished(agent.run("s", "go"));
    expect(await resultsOf("s")).toMatchObject([
      { callId: "call_0", output: 2 },
      { callId: "call_0-2", output: 4 },
    ]);
  });

  it("that needs approval is denied where nobody can be asked, and runs where all is allowed", async () => {
    let runs = 0;
    const danger = defineTool({
      name: "danger",
      description: "Needs approval.",
      input: z.object({}),
      needsApproval: true,
      execute: async () => ++runs,
    });
    const steps = [{ calls: [{ name: "danger", input: {} }] }, { text: "ok" }];
    const { agent } = await bench.agent([...steps, ...steps], {}, [danger]);
    await bench.finished(agent.run("denied", "go"));
    expect(await resultsOf("denied")).toMatchObject([{ status: "denied" }]);
    expect(runs).toBe(0);
    await bench.finished(agent.run("allowed", "go", { approval: "allow" }));
    expect(runs).toBe(1);
  });

  it("rule 7.20: that asks for a turn on its own session is refused at once, not left to wait for itself", async () => {
    const held: { run?: (onBusy: "wait" | "queue") => Promise<string> } = {};
    const nested = defineTool({
      name: "nested",
      description: "Runs a turn.",
      input: z.object({}),
      execute: async () => `${await held.run?.("queue")} ${await held.run?.("wait")}`,
    });
    const { agent } = await bench.agent(
      [{ calls: [{ name: "nested", input: {} }] }, { text: "ok" }, { text: "later" }],
      {},
      [nested],
    );
    held.run = async (onBusy) => (await agent.run("s", "inner", { onBusy }).result).outcome;
    await bench.finished(agent.run("s", "go"));
    expect(await resultsOf("s")).toMatchObject([
      { status: "error", output: expect.stringContaining("wait for its own end") },
    ]);
  });

  it("ends the turn as failed once the iterations are used up", async () => {
    const call = { calls: [{ name: "add", input: { a: 1, b: 1 } }] };
    const { agent } = await bench.agent([call, call, call], { maxIterations: 2 }, [add]);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "failed", reason: "MAX_ITERATIONS" });
    await resultsOf("s");
  });
});
