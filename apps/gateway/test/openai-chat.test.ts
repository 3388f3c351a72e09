import { defineTool } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import type { ScriptedStep } from "@turnkeeper/agent-core/testing";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { z } from "zod";
import { openGateway, post, until } from "./inside/open-gateway.ts";
import type { OpenedGateway } from "./inside/open-gateway.ts";

const model = "scripted/model";
const clientOf = ({ url }: Pick<OpenedGateway, "url">): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const user = (content: string): { role: "user"; content: string } => ({ role: "user", content });

const cut = (text: string, unified: "length" | "content-filter"): ScriptedStep => ({
  parts: [
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: text },
    { type: "text-end", id: "t" },
    {
      type: "finish",
      usage: {
        inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 2, text: 2, reasoning: undefined },
      },
      finishReason: { unified, raw: unified },
    },
  ],
});

test("a completion is a turn of a session of its own, which is gone once it was told", async () => {
  const gateway = await openGateway([{ text: "Good morning." }]);
  const completion = await clientOf(gateway).chat.completions.create({ model, messages: [user("Good morning")] });
  expect(completion).toMatchObject({
    object: "chat.completion",
    model,
    choices: [{ index: 0, message: { role: "assistant", content: "Good morning." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    turnkeeper: { partial: false },
  });
  expect((await gateway.store.sessions.list()).sessions).toEqual([]);
});

test("a streamed completion comes in chunks, with its usage where that is asked for", async () => {
  const gateway = await openGateway([{ text: "Good morning to you." }]);
  const stream = await clientOf(gateway).chat.completions.create({
    model: "model",
    messages: [user("Good morning")],
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("Good morning to you.");
  expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant");
  expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(["stop"]);
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 15 } });
  expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  expect((await gateway.store.sessions.list()).sessions).toEqual([]);
});

test("the client's streaming helper takes the stream as its own", async () => {
  const gateway = await openGateway([{ text: "Good morning to you." }]);
  const runner = clientOf(gateway).chat.completions.stream({ model, messages: [user("Good morning")] });
  expect(await runner.finalContent()).toBe("Good morning to you.");
});

test("what a request tells of the conversation and how it is to be answered reaches the model", async () => {
  const scripted = scriptedModel([{ text: '{"n":4}' }]);
  const gateway = await openGateway([], {}, { model: scripted });
  await clientOf(gateway).chat.completions.create({
    model,
    messages: [
      { role: "system", content: "Be short." },
      user("2+1?"),
      { role: "assistant", content: "3" },
      user("2+2?"),
    ],
    temperature: 0.5,
    top_p: 0.9,
    max_completion_tokens: 50,
    stop: "END",
    seed: 7,
    response_format: { type: "json_schema", json_schema: { name: "sum", schema: { type: "object" } } },
  });
  expect(scripted.requests[0]).toMatchObject({
    prompt: [
      { role: "system", content: "Be short." },
      { role: "user", content: [{ text: "2+1?" }] },
      { role: "assistant", content: [{ text: "3" }] },
      { role: "user", content: [{ text: "2+2?" }] },
    ],
    temperature: 0.5,
    topP: 0.9,
    maxOutputTokens: 50,
    stopSequences: ["END"],
    seed: 7,
    responseFormat: { type: "json", name: "sum", schema: { type: "object" } },
  });
});

test("an answer that is cut says so: at the limit that was asked for, by a filter, by a failure in its middle", async () => {
  const failing: ScriptedStep = {
    parts: [
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "Half an" },
    ],
    error: Object.assign(new Error("bad"), { statusCode: 400 }),
  };
  const gateway = await openGateway([cut("Once upon", "length"), cut("Once", "content-filter"), failing, failing]);
  const client = clientOf(gateway);
  const ask = async () => {
    const { choices, ...rest } = await client.chat.completions.create({ model, messages: [user("x")], max_tokens: 2 });
    return { reason: choices[0]?.finish_reason, text: choices[0]?.message.content, ...rest };
  };
  expect(await ask()).toMatchObject({
    reason: "length",
    text: "Once upon",
    turnkeeper: { partial: true, reason: "output-limit" },
  });
  expect(await ask()).toMatchObject({ reason: "content_filter", text: "Once", turnkeeper: { partial: true } });
  expect(await ask()).toMatchObject({
    reason: "length",
    text: "Half an",
    turnkeeper: { partial: true, outcome: "failed" },
  });
  const stream = await client.chat.completions.create({ model, messages: [user("x")], stream: true });
  let text = "";
  await expect(async () => {
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
  }).rejects.toThrow(OpenAI.APIError);
  expect(text).toBe("Half an");
});

test("a durable session keeps its transcript: the new message alone or the whole conversation goes on with it", async () => {
  const scripted = scriptedModel([{ text: "One." }, { text: "Two." }, { text: "Three." }]);
  const gateway = await openGateway([], {}, { model: scripted });
  const client = clientOf(gateway);
  const options = { headers: { "x-session-id": "mine" } };
  const say = async (...messages: OpenAI.ChatCompletionMessageParam[]) =>
    (await client.chat.completions.create({ model, messages }, options)).choices[0]?.message.content;
  expect(await say(user("1"))).toBe("One.");
  expect(await say(user("2"))).toBe("Two.");
  const whole = [user("1"), { role: "assistant", content: "One." }, user("2"), { role: "assistant", content: "Two." }];
  expect(await say(...(whole as OpenAI.ChatCompletionMessageParam[]), user("3"))).toBe("Three.");
  expect(scripted.requests[2]?.prompt.map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
    "user",
  ]);
  expect((await gateway.store.sessions.read("mine"))?.totals.turnCount).toBe(3);
});

test("a conversation that is not the session's own is refused, and nothing of it is stored", async () => {
  const gateway = await openGateway([{ text: "One." }]);
  const options = { headers: { "x-session-id": "mine" } };
  const client = clientOf(gateway);
  await client.chat.completions.create({ model, messages: [user("1")] }, options);
  const messages = [user("1"), { role: "assistant" as const, content: "Another." }, user("2")];
  const refused = client.chat.completions.create({ model, messages }, options);
  await expect(refused).rejects.toMatchObject({ status: 409, code: "history_mismatch", param: "messages" });
  const fresh = client.chat.completions.create({ model, messages }, { headers: { "x-session-id": "new" } });
  await expect(fresh).rejects.toMatchObject({ status: 409, code: "history_mismatch" });
  expect((await gateway.store.sessions.read("mine"))?.totals.turnCount).toBe(1);
});

test("a retry with the same key runs nothing twice, with a session that is named and without", async () => {
  const gateway = await openGateway([{ text: "Once." }, { text: "Once more." }]);
  const client = clientOf(gateway);
  for (const [headers, text] of [
    [{ "idempotency-key": "k-1", "x-session-id": "mine" }, "Once."],
    [{ "idempotency-key": "k-2" }, "Once more."],
  ] as const) {
    const ask = () => client.chat.completions.create({ model, messages: [user("1")] }, { headers });
    const [first, again] = [await ask(), await ask()];
    expect([first.choices[0]?.message.content, again.choices[0]?.message.content]).toEqual([text, text]);
    expect(again.id).toBe(first.id);
    const other = client.chat.completions.create({ model, messages: [user("2")] }, { headers });
    await expect(other).rejects.toMatchObject({ status: 409, code: "input_id_conflict" });
  }
});

test("what is wrong is told with OpenAI's own classes of errors", async () => {
  const gateway = await openGateway([{ fail: Object.assign(new Error("no"), { statusCode: 401 }) }], {
    token: "0123456789abcdef0123456789abcdef",
  });
  const baseURL = `${gateway.url}/v1`;
  const stranger = new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 });
  const client = new OpenAI({ baseURL, apiKey: "0123456789abcdef0123456789abcdef", maxRetries: 0 });
  const messages = [user("1")];
  await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  await expect(client.chat.completions.create({ model: "other", messages })).rejects.toMatchObject({
    status: 404,
    code: "model_not_found",
    param: "model",
  });
  await expect(client.chat.completions.create({ model, messages, n: 2 })).rejects.toMatchObject({
    status: 400,
    type: "invalid_request_error",
    param: "n",
  });
  const image = { type: "image_url" as const, image_url: { url: "data:image/png;base64,AA==" } };
  await expect(
    client.chat.completions.create({ model, messages: [{ role: "user", content: [image] }] }),
  ).rejects.toMatchObject({ status: 400, param: "messages[0].content[0]" });
  await expect(client.chat.completions.create({ model, messages })).rejects.toMatchObject({
    status: 502,
    code: "model_auth",
  });
});

test("the demo stands in for any model, and says that it was the demo; no other model does", async () => {
  const gateway = await openGateway(
    [],
    {},
    { model: scriptedModel([{ text: "I am a demo." }, { text: "So I am." }], "demo/tools") },
  );
  const client = clientOf(gateway);
  const messages = [user("Are semicolons optional in JavaScript?")];
  const completion = await client.chat.completions.create({ model: "gpt-5.5", messages });
  expect(completion).toMatchObject({ model: "demo/tools", choices: [{ message: { content: "I am a demo." } }] });
  const response = await client.responses.create({ model: "gpt-5.5", input: "And now?" });
  expect(response).toMatchObject({ model: "demo/tools", output_text: "So I am." });
  const real = clientOf(await openGateway([{ text: "Never said." }]));
  await expect(real.chat.completions.create({ model: "gpt-5.5", messages })).rejects.toMatchObject({ status: 404 });
});

test("a busy session is 409 with Retry-After where the request does not wait", async () => {
  const gateway = await openGateway([{ silentAfter: "Well" }]);
  const client = clientOf(gateway);
  const running = gateway.agent.run("mine", "Good morning");
  await until(async () => (await gateway.store.turns.running("mine")).length > 0);
  const headers = { "x-session-id": "mine", "x-on-busy": "reject" };
  const refused = client.chat.completions.create({ model, messages: [user("1")] }, { headers });
  await expect(refused).rejects.toMatchObject({ status: 409, code: "session_busy" });
  await expect(refused).rejects.toBeInstanceOf(OpenAI.ConflictError);
  running.stop({ hard: true });
  await running.result;
});

test("a client that goes away stops the turn of a session of its own, and none of a durable one", async () => {
  const gateway = await openGateway([{ silentAfter: "Well" }, { silentAfter: "Well" }]);
  const client = clientOf(gateway);
  for (const name of [undefined, "mine"]) {
    const leaving = new AbortController();
    const headers = name === undefined ? {} : { "x-session-id": name };
    const asked = client.chat.completions.create({ model, messages: [user("1")] }, { headers, signal: leaving.signal });
    await until(async () => (await gateway.store.turns.running()).length > 0);
    leaving.abort();
    await expect(asked).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    if (name === undefined) await until(async () => (await gateway.store.sessions.list()).sessions.length === 0);
    else expect((await gateway.store.turns.running(name)).length).toBe(1);
  }
  await gateway.agent.stop("mine", { hard: true });
});

test("tools of the agent run here, between what the answer says", async () => {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    input: z.strictObject({}),
    execute: async () => "rain",
  });
  const gateway = await openGateway(
    [{ text: "Let me look.", calls: [{ name: "look", input: {} }] }, { text: "It rains." }],
    {},
    { tools: [look] },
  );
  const { choices, usage } = await clientOf(gateway).chat.completions.create({ model, messages: [user("Weather?")] });
  expect(choices[0]).toMatchObject({ message: { content: "Let me look.\n\nIt rains." }, finish_reason: "stop" });
  expect(usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 10 });
});

test("the models are the one that answers", async () => {
  const client = clientOf(await openGateway([]));
  const ids = [];
  for await (const { id } of client.models.list()) ids.push(id);
  expect(ids).toEqual([model]);
  expect(await client.models.retrieve(model)).toMatchObject({ id: model, object: "model", owned_by: "scripted" });
  await expect(client.models.retrieve("other")).rejects.toBeInstanceOf(OpenAI.NotFoundError);
});

test("a request that is no JSON, or no object, is told so in OpenAI's shape", async () => {
  const { url } = await openGateway([]);
  const answer = await post(`${url}/v1/chat/completions`, [1]);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { type: "invalid_request_error", code: "invalid_value" } });
});
