import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { createAgent, defineTool } from "@turnkeeper/agent-core";
import type { Agent, AnyTool } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import type { ScriptedStep } from "@turnkeeper/agent-core/testing";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore } from "@turnkeeper/state-store";
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { startGateway } from "../src/index.ts";
import { traceTurns } from "../src/telemetry/index.ts";

const tool = (name: string, needsApproval: boolean, fails = false): AnyTool =>
  defineTool({
    name,
    description: "Says it again.",
    input: z.object({ say: z.string() }),
    needsApproval,
    execute: ({ say }) => (fails ? Promise.reject(new Error(`no ${say}`)) : Promise.resolve(`echo ${say}`)),
  });

let close = async (): Promise<void> => {};
afterEach(() => close());

interface Traced {
  readonly agent: Agent;
  readonly store: MemoryStore;
  readonly spans: () => readonly ReadableSpan[];
}

async function traced(steps: readonly ScriptedStep[]): Promise<Traced> {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const tools = [tool("look", false), tool("break", false, true), tool("change", true)];
  const store = createMemoryStore({ host: systemHost });
  const agent = await createAgent({ store, model: scriptedModel(steps, "openai/gpt-5-mini"), tools });
  const traces = traceTurns(agent, provider.getTracer("test"));
  close = async () => {
    traces[Symbol.dispose]();
    await agent.close();
    await provider.shutdown();
  };
  return { agent, store, spans: () => exporter.getFinishedSpans() };
}

const named = (spans: readonly ReadableSpan[], name: string): readonly ReadableSpan[] =>
  spans.filter((span) => span.name === name);

it("a turn is a span, its model calls and tools are spans in it, by the conventions for generative AI", async () => {
  const { agent, spans } = await traced([
    {
      text: "secret words",
      calls: [
        { id: "a", name: "look", input: { say: "secret words" } },
        { id: "b", name: "break", input: { say: "secret words" } },
      ],
    },
    { text: "secret words" },
  ]);
  const { turnId } = await agent.run("s", "secret words").result;
  const [turn] = named(spans(), "invoke_agent turnkeeper");
  expect(turn).toMatchObject({
    kind: SpanKind.INTERNAL,
    attributes: {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": "s",
      "gen_ai.usage.input_tokens": 20,
      "turnkeeper.turn_id": turnId,
      "turnkeeper.fencing_token": 1,
      "turnkeeper.outcome": "answered",
    },
  });
  const chats = named(spans(), "chat gpt-5-mini");
  expect(chats.map(({ attributes }) => attributes["gen_ai.response.finish_reasons"])).toEqual([
    ["tool-calls"],
    ["stop"],
  ]);
  expect(chats[0]).toMatchObject({
    kind: SpanKind.CLIENT,
    attributes: { "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5-mini" },
  });
  expect(named(spans(), "execute_tool look")).toMatchObject([
    { attributes: { "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "a" }, status: { code: SpanStatusCode.UNSET } },
  ]);
  expect(named(spans(), "execute_tool break")).toMatchObject([
    { attributes: { "error.type": "tool_error" }, status: { code: SpanStatusCode.ERROR } },
  ]);
  const inside = spans().filter((span) => span !== turn);
  expect(inside).toHaveLength(4);
  for (const span of inside) expect(span.parentSpanContext?.spanId).toBe(turn?.spanContext().spanId);
  const said = spans().map(({ name, attributes, events }) => ({ name, attributes, events }));
  expect(JSON.stringify(said)).not.toContain("secret");
});

it("a turn that is suspended ends its span, and goes on in another one of the same turn", async () => {
  const { agent, spans } = await traced([
    { calls: [{ id: "a", name: "change", input: { say: "it" } }] },
    { text: "done" },
  ]);
  const turn = agent.run("s", "Hi", { approval: "ask" });
  for await (const { type } of turn)
    if (type === "approval.requested") await agent.answer("s", "a", { decision: "allow" });
  const { turnId } = await turn.result;
  expect(named(spans(), "invoke_agent turnkeeper").map(({ attributes }) => attributes)).toMatchObject([
    { "turnkeeper.turn_id": turnId, "turnkeeper.fencing_token": 1, "turnkeeper.outcome": "suspended" },
    {
      "turnkeeper.turn_id": turnId,
      "turnkeeper.fencing_token": expect.any(Number) as number,
      "turnkeeper.resumes": true,
      "turnkeeper.outcome": "answered",
    },
  ]);
  expect(named(spans(), "execute_tool change")).toHaveLength(1);
});

it("a turn that fails, and the call that it fails over, are marked with their codes", async () => {
  const { agent, spans } = await traced([{ fail: new Error("secret words") }]);
  const { reason } = await agent.run("s", "Hi").result;
  const [turn] = named(spans(), "invoke_agent turnkeeper");
  expect(turn).toMatchObject({
    attributes: { "turnkeeper.outcome": "failed", "error.type": reason },
    status: { code: SpanStatusCode.ERROR },
  });
  expect(named(spans(), "chat gpt-5-mini")[0]).toMatchObject({
    attributes: { "error.type": reason },
    status: { code: SpanStatusCode.ERROR },
  });
  expect(JSON.stringify(spans().map(({ attributes, status }) => ({ attributes, status })))).not.toContain("secret");
});

it("a turn's span is in that of the request that asked for it, and of a header that names none it is not", async () => {
  const { agent, store, spans } = await traced([{ text: "1" }, { text: "2" }]);
  const gateway = await startGateway({ agent, store }, { port: 0, drainMs: 0 });
  const [traceId, spanId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
  const run = (traceparent: string): Promise<Response> =>
    fetch(`${gateway.url}/v1/sessions/s/turns`, {
      method: "POST",
      headers: { "content-type": "application/json", traceparent },
      body: JSON.stringify({ input: "Hi" }),
    });
  expect((await run(`00-${traceId}-${spanId}-01`)).status).toBe(200);
  expect((await run(`00-${"0".repeat(32)}-${spanId}-01`)).status).toBe(200);
  await gateway.close();
  const [first, second] = named(spans(), "invoke_agent turnkeeper");
  expect([first?.spanContext().traceId, first?.parentSpanContext?.spanId]).toEqual([traceId, spanId]);
  expect(second?.spanContext().traceId).not.toBe(traceId);
  expect(second?.parentSpanContext).toBeUndefined();
});
