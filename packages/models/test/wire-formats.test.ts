import { describe, expect, it } from "vitest";
import { bodyOf, httpServer, startStream, streamServer } from "./loopback-server.ts";
import type { WireFormat } from "./loopback-server.ts";
import { answerOf, compatibleAt, opened, streamParts } from "./model-answer.ts";
import { anthropicCall, anthropicText, chatCalls, chatText, responsesCall } from "./written-streams.ts";

const tools = [
  {
    type: "function" as const,
    name: "read_file",
    description: "Reads.",
    inputSchema: { type: "object" as const, properties: { path: { type: "string" as const } } },
  },
];

describe("the chat format", () => {
  it("streams text, delta by delta, with its usage", async () => {
    const server = await streamServer(chatText, "openai");
    const model = await compatibleAt(server.url);
    const answer = answerOf(await streamParts(model.languageModel));
    expect(answer).toMatchObject({
      text: "Grüße, 世界!",
      textDeltaCount: 3,
      finish: "stop",
      raw: "stop",
      inputTokens: 9,
      outputTokens: 5,
      cachedTokens: 4,
    });
  });

  it("puts interleaved argument fragments back together, call by call", async () => {
    const server = await streamServer(chatCalls, "openai");
    const model = await compatibleAt(server.url);
    const parts = await streamParts(model.languageModel, { tools });
    const answer = answerOf(parts);
    expect(answer.calls).toEqual([
      { name: "read_file", input: '{"path":"a\\ud83d\\ude00.md"}' },
      { name: "read_file", input: '{"path":"b.md"}' },
    ]);
    expect(JSON.parse(answer.calls[0]!.input)).toEqual({ path: "a😀.md" });
    expect(answer).toMatchObject({ reasoning: "Two files are wanted.", finish: "tool-calls", reasoningTokens: 6 });
    expect(parts.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))).toEqual(["call_a", "call_b"]);
  });

  it("asks for a stream with usage, sends the tools and the key, and says what it accepts", async () => {
    const server = await streamServer(chatText, "openai");
    const model = await opened("openai-compatible/org/model:7b", {
      env: { SOME_KEY: " key-1\n" },
      providers: { "openai-compatible": { baseUrl: `${server.url}/v1///`, apiKeyEnv: "SOME_KEY" } },
    });
    await streamParts(model.languageModel, { tools });
    const [request] = server.requests;
    expect(request).toMatchObject({ method: "POST", path: "/v1/chat/completions" });
    expect(request!.headers).toMatchObject({
      authorization: "Bearer key-1",
      accept: "text/event-stream",
      "content-type": "application/json",
    });
    expect(request!.body).toMatchObject({
      model: "org/model:7b",
      stream: true,
      stream_options: { include_usage: true },
      tools: [{ function: { name: "read_file" } }],
    });
  });

  it("is what openai/… speaks at any other address than OpenAI's", async () => {
    const server = await streamServer(chatCalls, "openai");
    const model = await opened("openai/gpt-x", {
      env: { OPENAI_API_KEY: "key-1", OPENAI_BASE_URL: `${server.url}/v1/` },
    });
    const answer = answerOf(await streamParts(model.languageModel));
    expect(server.requests[0]!.path).toBe("/v1/chat/completions");
    expect(answer.reasoning).toBe("Two files are wanted.");
    expect(answer.calls).toHaveLength(2);
  });
});

describe("the Anthropic format", () => {
  it("streams thinking with its signature, text and a call", async () => {
    const server = await streamServer(anthropicCall, "anthropic");
    const model = await opened("anthropic/claude-x", {
      env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: server.url },
    });
    const parts = await streamParts(model.languageModel, { tools });
    expect(answerOf(parts)).toMatchObject({
      reasoning: "It asks for a file.",
      text: "I read it.",
      calls: [{ name: "read_file", input: '{"path": "a.md"}' }],
      inputDeltas: '{"path": "a.md"}',
      finish: "tool-calls",
      raw: "tool_use",
      inputTokens: 50,
      outputTokens: 33,
      cachedTokens: 10,
    });
    expect(JSON.stringify(parts)).toContain("c2lnbmF0dXJl");
    expect(server.requests[0]!.headers).toMatchObject({ "x-api-key": "key-1", accept: "text/event-stream" });
  });

  it.each(["", "/", "/v1", "/v1/"])("finds the API with the address written as HOST%s", async (path) => {
    const server = await streamServer(anthropicText, "anthropic");
    const model = await opened("anthropic/claude-x", {
      env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: `${server.url}${path}` },
    });
    expect(answerOf(await streamParts(model.languageModel)).text).toBe("Good day.");
    expect(server.requests[0]!.path).toBe("/v1/messages");
  });
});

describe("OpenAI's Responses API", () => {
  it("streams text and a call", async () => {
    const server = await streamServer(responsesCall, "anthropic");
    const model = await opened("openai/gpt-x", {
      env: { OPENAI_API_KEY: "key-1" },
      providers: { openai: { baseUrl: `${server.url}/v1`, api: "responses" } },
    });
    const answer = answerOf(await streamParts(model.languageModel, { tools }));
    expect(server.requests[0]!.path).toBe("/v1/responses");
    expect(answer).toMatchObject({
      text: "I read it.",
      calls: [{ name: "read_file", input: '{"path":"a.md"}' }],
      finish: "tool-calls",
      inputTokens: 50,
      outputTokens: 17,
      reasoningTokens: 2,
      cachedTokens: 8,
    });
  });
});

// Networks cut anywhere; a character, an event and the closing line must survive it.
describe.each<[string, readonly string[], WireFormat]>([
  ["chat", chatCalls, "openai"],
  ["Anthropic", anthropicCall, "anthropic"],
])("a stream in the %s format", (_name, lines, format) => {
  it.each([1, 7, 64])("reads the same in packets of %d bytes", async (size) => {
    const body = Buffer.from(bodyOf(lines, format));
    const server = await httpServer((_request, response) => {
      startStream(response);
      response.socket?.setNoDelay(true);
      for (let at = 0; at < body.length; at += size) response.write(body.subarray(at, at + size));
      response.end();
    });
    const model =
      format === "openai"
        ? await compatibleAt(server.url)
        : await opened("anthropic/claude-x", { env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: server.url } });
    const whole = await streamServer(lines, format);
    const other =
      format === "openai"
        ? await compatibleAt(whole.url)
        : await opened("anthropic/claude-x", { env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: whole.url } });
    expect(answerOf(await streamParts(model.languageModel))).toEqual(answerOf(await streamParts(other.languageModel)));
  });
});

it("answers without a stream too", async () => {
  const server = await httpServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        id: "1",
        object: "chat.completion",
        created: 1,
        model: "m",
        choices: [{ index: 0, message: { role: "assistant", content: "Whole." }, finish_reason: "stop" }],
        usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
      }),
    );
  });
  const model = await compatibleAt(server.url);
  const result = await model.languageModel.doGenerate({
    prompt: [{ role: "user", content: [{ type: "text", text: "Say it." }] }],
  });
  expect(result.content).toEqual([{ type: "text", text: "Whole." }]);
  expect(result.usage.outputTokens.total).toBe(2);
});
