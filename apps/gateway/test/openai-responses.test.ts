import { scriptedModel } from "@turnkeeper/agent-core/testing";
import type { ScriptedStep } from "@turnkeeper/agent-core/testing";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { openGateway } from "./inside/open-gateway.ts";
import type { OpenedGateway } from "./inside/open-gateway.ts";

const model = "scripted/model";
const clientOf = ({ url }: Pick<OpenedGateway, "url">): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const weather: ScriptedStep = { calls: [{ id: "Bonn", name: "weather", input: { city: "Bonn" } }] };
const tools: OpenAI.Responses.FunctionTool[] = [
  { type: "function", name: "weather", parameters: { type: "object" }, strict: false },
];

test("a response is a turn, and previous_response_id goes on with its session", async () => {
  const scripted = scriptedModel([{ text: "One." }, { text: "Two." }]);
  const gateway = await openGateway([], {}, { model: scripted });
  const client = clientOf(gateway);
  const first = await client.responses.create({ model, instructions: "Be short.", input: "1" });
  expect(first).toMatchObject({
    object: "response",
    status: "completed",
    model,
    output_text: "One.",
    usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  });
  const second = await client.responses.create({ model, input: "2", previous_response_id: first.id });
  expect(second).toMatchObject({ output_text: "Two.", previous_response_id: first.id });
  expect(scripted.requests.map(({ prompt }) => prompt.map(({ role }) => role))).toEqual([
    ["system", "user"],
    ["user", "assistant", "user"],
  ]);
  expect((await gateway.store.sessions.list()).sessions).toHaveLength(1);
  const branch = client.responses.create({ model, input: "3", previous_response_id: first.id });
  await expect(branch).rejects.toMatchObject({ status: 400, param: "previous_response_id" });
  const unknown = client.responses.create({ model, input: "3", previous_response_id: "resp_none" });
  await expect(unknown).rejects.toMatchObject({ status: 400, code: "previous_response_not_found" });
});

test("a response that is not stored leaves no session, and cannot be gone on with", async () => {
  const gateway = await openGateway([{ text: "One." }]);
  const client = clientOf(gateway);
  const { id } = await client.responses.create({ model, input: "1", store: false });
  expect((await gateway.store.sessions.list()).sessions).toEqual([]);
  const next = client.responses.create({ model, input: "2", previous_response_id: id });
  await expect(next).rejects.toMatchObject({ status: 400, code: "previous_response_not_found" });
});

test("a streamed response comes as the events that the client's own helper puts together", async () => {
  const gateway = await openGateway([{ text: "Good morning to you." }]);
  const stream = clientOf(gateway).responses.stream({ model, input: "Good morning" });
  const types: string[] = [];
  let text = "";
  for await (const event of stream) {
    if (types.at(-1) !== event.type) types.push(event.type);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  expect(text).toBe("Good morning to you.");
  expect(types).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  expect(await stream.finalResponse()).toMatchObject({ status: "completed", output_text: "Good morning to you." });
});

test("calls of the client's tools wait for their outputs, which the next response goes on from", async () => {
  const gateway = await openGateway([weather, { text: "It rains." }]);
  const client = clientOf(gateway);
  const first = await client.responses.create({ model, tools, input: "Weather?" });
  expect(first.output).toMatchObject([
    { type: "function_call", call_id: "Bonn", name: "weather", arguments: '{"city":"Bonn"}' },
  ]);
  const output = { type: "function_call_output" as const, call_id: "Bonn", output: "rain" };
  const stream = client.responses.stream({ model, tools, input: [output], previous_response_id: first.id });
  const second = await stream.finalResponse();
  expect(second.output_text).toBe("It rains.");
  expect(second.id).not.toBe(first.id);
  expect((await gateway.store.sessions.list()).sessions).toMatchObject([{ totals: { turnCount: 1 } }]);
});

test("the whole conversation may be told, calls and outputs with it", async () => {
  const scripted = scriptedModel([weather, { text: "It rains." }]);
  const gateway = await openGateway([], {}, { model: scripted });
  const client = clientOf(gateway);
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Weather?" }];
  const first = await client.responses.create({ model, tools, input, store: false });
  const output = { type: "function_call_output" as const, call_id: "Bonn", output: "rain" };
  const next = await client.responses.create({
    model,
    tools,
    input: [...input, ...(first.output as OpenAI.Responses.ResponseInput), output],
    store: false,
  });
  expect(next.output_text).toBe("It rains.");
  expect(scripted.requests[1]?.prompt.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
});

test("a response that failed in its middle says so, streamed or not, and one that said nothing is an error", async () => {
  const failing: ScriptedStep = {
    parts: [
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "Half an" },
    ],
    error: Object.assign(new Error("bad"), { statusCode: 400 }),
  };
  const nothing: ScriptedStep = { fail: Object.assign(new Error("no"), { statusCode: 401 }) };
  const gateway = await openGateway([failing, failing, nothing]);
  const client = clientOf(gateway);
  expect(await client.responses.create({ model, input: "1" })).toMatchObject({
    status: "failed",
    output_text: "Half an",
  });
  const events = [];
  for await (const event of await client.responses.create({ model, input: "1", stream: true })) events.push(event);
  expect(events.at(-1)).toMatchObject({ type: "response.failed", response: { status: "failed" } });
  await expect(client.responses.create({ model, input: "1" })).rejects.toMatchObject({ status: 502 });
});

test("a route of that API which is not here is told in the words that its client reads", async () => {
  const client = clientOf(await openGateway([]));
  await expect(client.responses.retrieve("resp_1")).rejects.toMatchObject({
    status: 404,
    code: "route_unknown",
    message: "404 There is no such route.",
  });
});
