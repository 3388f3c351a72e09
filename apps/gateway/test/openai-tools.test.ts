import { defineTool } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore, verifyRecords } from "@turnkeeper/state-store";
import type { MemoryStore, ToolBody } from "@turnkeeper/state-store";
import OpenAI from "openai";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { openGateway, until } from "./inside/open-gateway.ts";
import type { OpenedGateway } from "./inside/open-gateway.ts";

const model = "scripted/model";
const clientOf = ({ url }: Pick<OpenedGateway, "url">): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const user = (content: string): { role: "user"; content: string } => ({ role: "user", content });
const result = (tool_call_id: string, content: string): OpenAI.ChatCompletionToolMessageParam => ({
  role: "tool",
  tool_call_id,
  content,
});
const weather = (...cities: string[]) => ({
  calls: cities.map((city) => ({ id: city, name: "weather", input: { city } })),
});
const tools: OpenAI.ChatCompletionTool[] = [
  { type: "function", function: { name: "weather", parameters: { type: "object" } } },
];
const mine = { headers: { "x-session-id": "mine" } };

async function resultsOf(store: MemoryStore): Promise<readonly ToolBody[]> {
  const records = await store.sessions.records("mine");
  if (!records) throw new Error("There is no session.");
  expect(verifyRecords(records)).toEqual([]);
  return records.entries.flatMap(({ body }) => (body.role === "tool" ? [body] : []));
}

test("a durable session waits for the results of its client's calls, and goes on in the same turn", async () => {
  const scripted = scriptedModel([{ text: "I look.", ...weather("Bonn", "Rome") }, { text: "Rain and sun." }]);
  const gateway = await openGateway([], {}, { model: scripted });
  const client = clientOf(gateway);
  const first = await client.chat.completions.create({ model, tools, messages: [user("Weather?")] }, mine);
  const [choice] = first.choices;
  expect(choice).toMatchObject({ finish_reason: "tool_calls", message: { content: "I look." } });
  expect(choice?.message.tool_calls?.map((call) => [call.id, call.type === "function" && call.function])).toEqual([
    ["Bonn", { name: "weather", arguments: '{"city":"Bonn"}' }],
    ["Rome", { name: "weather", arguments: '{"city":"Rome"}' }],
  ]);
  expect(first.usage?.total_tokens).toBe(15);
  const [view] = await gateway.store.turns.running("mine");
  expect([view?.turn.state, view?.lease]).toEqual(["suspended", undefined]);

  if (!choice) throw new Error("There is no choice.");
  const results = [result("Bonn", "rain"), result("Rome", "sun")];
  const messages = [user("Weather?"), choice.message, ...results];
  const stream = await client.chat.completions.create({ model, tools, messages, stream: true }, mine);
  let text = "";
  for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
  expect(text).toBe("Rain and sun.");
  expect((await gateway.store.sessions.read("mine"))?.totals.turnCount).toBe(1);
  expect(await resultsOf(gateway.store)).toMatchObject([
    { callId: "Bonn", status: "ok", output: "rain" },
    { callId: "Rome", status: "ok", output: "sun" },
  ]);
  // The same request again, after its answer was lost, runs nothing: it is told the rest of that turn.
  const again = await client.chat.completions.create({ model, tools, messages: results }, mine);
  expect(again.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "Rain and sun." } });
  expect(scripted.requests).toHaveLength(2);
});

test("a request that does not answer each call is refused, and the turn goes on waiting", async () => {
  const gateway = await openGateway([weather("Bonn", "Rome"), { text: "Done." }]);
  const client = clientOf(gateway);
  await client.chat.completions.create({ model, tools, messages: [user("Weather?")] }, mine);
  const answer = (...messages: OpenAI.ChatCompletionMessageParam[]) =>
    client.chat.completions.create({ model, tools, messages }, mine);
  await expect(answer(result("Bonn", "rain"))).rejects.toMatchObject({ status: 400, param: "messages" });
  await expect(answer(result("Oslo", "snow"))).rejects.toMatchObject({ status: 400, param: "messages" });
  expect((await gateway.store.turns.running("mine"))[0]?.turn.state).toBe("suspended");
  const whole = await answer(result("Bonn", "rain"), result("Rome", "sun"));
  expect(whole.choices[0]?.message.content).toBe("Done.");
});

test("PAIR-1: a client that says something else leaves settled calls, and its late results are refused", async () => {
  const gateway = await openGateway([weather("Bonn"), { text: "Never mind." }]);
  const client = clientOf(gateway);
  await client.chat.completions.create({ model, tools, messages: [user("Weather?")] }, mine);
  const other = await client.chat.completions.create({ model, messages: [user("Forget it.")] }, mine);
  expect(other.choices[0]?.message.content).toBe("Never mind.");
  expect(await resultsOf(gateway.store)).toMatchObject([{ callId: "Bonn", status: "interrupted" }]);
  const late = client.chat.completions.create({ model, messages: [result("Bonn", "rain")] }, mine);
  await expect(late).rejects.toMatchObject({ status: 409, code: "calls_settled" });
});

test("PAIR-1 control: without what settles it, a call that nobody answers has no result", async () => {
  const gateway = await openGateway([weather("Bonn")]);
  await clientOf(gateway).chat.completions.create({ model, tools, messages: [user("Weather?")] }, mine);
  expect(await resultsOf(gateway.store)).toEqual([]);
});

test("results go to another gateway of the store, once the one that handed the calls over is gone", async () => {
  const store = createMemoryStore({ host: systemHost });
  const first = await openGateway([weather("Bonn")], {}, { store });
  await clientOf(first).chat.completions.create({ model, tools, messages: [user("Weather?")] }, mine);
  await first.gateway.close();
  const scripted = scriptedModel([{ text: "It rains." }]);
  const second = await openGateway([], {}, { store, model: scripted });
  const messages = [result("Bonn", "rain")];
  const answer = await clientOf(second).chat.completions.create({ model, tools, messages }, mine);
  expect(answer.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "It rains." } });
  expect(scripted.requests[0]?.tools?.map(({ name }) => name)).toEqual(["weather"]);
  expect(await resultsOf(store)).toMatchObject([{ callId: "Bonn", status: "ok", output: "rain" }]);
});

test("a client that says something else to another gateway does not wait for the calls that one has handed over", async () => {
  const store = createMemoryStore({ host: systemHost });
  const first = await openGateway([weather("Bonn")], {}, { store });
  await clientOf(first).chat.completions.create({ model, tools, messages: [user("Weather?")] }, mine);
  await first.gateway.close();
  const second = await openGateway([{ text: "Never mind." }], {}, { store });
  const other = await clientOf(second).chat.completions.create({ model, messages: [user("Forget it.")] }, mine);
  expect(other.choices[0]?.message.content).toBe("Never mind.");
  expect(await resultsOf(store)).toMatchObject([{ callId: "Bonn", status: "interrupted" }]);
  expect((await store.sessions.records("mine"))?.turns).toMatchObject([
    { outcome: "interrupted", reason: "user-message" },
    { outcome: "answered" },
  ]);
});

test("a client that follows a turn of somebody else is not handed the call which that one asks to be allowed", async () => {
  const change = defineTool({
    name: "change",
    description: "Changes.",
    input: z.strictObject({}),
    needsApproval: true,
    execute: async () => "changed",
  });
  const asks = { calls: [{ id: "c", name: "change", input: {} }] };
  const { url, store, agent } = await openGateway([asks, { text: "Done." }], {}, { tools: [change] });
  const theirs = agent.run("mine", "Change it.", { approval: "ask", inputId: "one" });
  await until(async () => (await store.turns.running("mine"))[0]?.turn.state === "suspended");
  const followed = vi.spyOn(store.turns, "read");
  const headers = { ...mine.headers, "idempotency-key": "one" };
  const body = { model, messages: [user("Change it.")] };
  const answer = clientOf({ url }).chat.completions.create(body, { headers });
  await until(async () => followed.mock.calls.length > 0);
  await agent.answer("mine", "c", { decision: "allow", by: "test" });
  expect(await theirs.result).toMatchObject({ outcome: "answered", text: "Done." });
  expect((await answer).choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "Done." } });
});

test("tools of the gateway and of the client serve one step", async () => {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    input: z.strictObject({}),
    execute: async () => "seen",
  });
  const both = { calls: [...weather("Bonn").calls, { id: "l", name: "look", input: {} }] };
  const gateway = await openGateway([both, { text: "Both." }], {}, { tools: [look] });
  const client = clientOf(gateway);
  const first = await client.chat.completions.create({ model, tools, messages: [user("Go")] }, mine);
  expect(first.choices[0]?.message.tool_calls?.map(({ id }) => id)).toEqual(["Bonn"]);
  const next = await client.chat.completions.create({ model, tools, messages: [result("Bonn", "rain")] }, mine);
  expect(next.choices[0]?.message.content).toBe("Both.");
  expect((await resultsOf(gateway.store)).map(({ callId }) => callId).toSorted()).toEqual(["Bonn", "l"]);
  const twice: OpenAI.ChatCompletionTool[] = [{ type: "function", function: { name: "look" } }];
  await expect(
    client.chat.completions.create({ model, tools: twice, messages: [user("Go")] }, mine),
  ).rejects.toMatchObject({ status: 400, code: "tool_duplicate" });
});

test("a session of its own does not wait: the next request tells the calls and their results", async () => {
  const scripted = scriptedModel([weather("Bonn"), { text: "It rains." }]);
  const gateway = await openGateway([], {}, { model: scripted });
  const client = clientOf(gateway);
  const first = await client.chat.completions.create({ model, tools, messages: [user("Weather?")] });
  expect((await gateway.store.sessions.list()).sessions).toEqual([]);
  const [choice] = first.choices;
  if (!choice) throw new Error("There is no choice.");
  const messages = [user("Weather?"), choice.message, result("Bonn", "rain")];
  const next = await client.chat.completions.create({ model, tools, messages });
  expect(next.choices[0]?.message.content).toBe("It rains.");
  expect(scripted.requests[1]?.prompt.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  const unanswered = client.chat.completions.create({
    model,
    tools,
    messages: [...messages.slice(0, 2), user("And?")],
  });
  await expect(unanswered).rejects.toMatchObject({ status: 400, param: "messages" });
});

test("the official client's own loop over tools runs against it", async () => {
  const gateway = await openGateway([weather("Bonn"), { text: "It rains in Bonn." }]);
  const asked: string[] = [];
  const runner = clientOf(gateway).chat.completions.runTools(
    {
      model,
      messages: [user("Weather?")],
      tools: [
        {
          type: "function",
          function: {
            name: "weather",
            description: "The weather.",
            parameters: { type: "object", properties: { city: { type: "string" } } },
            parse: (text: string) => JSON.parse(text) as { city: string },
            function: async ({ city }: { city: string }) => {
              asked.push(city);
              return "rain";
            },
          },
        },
      ],
    },
    mine,
  );
  expect(await runner.finalContent()).toBe("It rains in Bonn.");
  expect(asked).toEqual(["Bonn"]);
});
