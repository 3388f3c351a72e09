import type { LanguageModelV3CallOptions, LanguageModelV3Prompt } from "@ai-sdk/provider";
import { cacheScope } from "@turnkeeper/models";
import type { ModelTraits, ResolvedModel } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";
import { shapedRequest } from "../src/request-shape.ts";
import { httpServer, startStream, bodyOf, streamServer } from "./loopback-server.ts";
import type { LoopbackServer } from "./loopback-server.ts";
import { opened, streamParts } from "./model-answer.ts";
import { anthropicText, chatText, responsesCall } from "./written-streams.ts";

const tools = [
  { type: "function" as const, name: "list", inputSchema: { type: "object" as const } },
  { type: "function" as const, name: "look", inputSchema: { type: "object" as const } },
];

const conversation: LanguageModelV3Prompt = [
  { role: "system", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "What is here?" }] },
  {
    role: "assistant",
    content: [
      { type: "text", text: "I look." },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: { path: "a" } },
    ],
  },
  {
    role: "tool",
    content: [
      { type: "tool-result", toolCallId: "c1", toolName: "look", output: { type: "text", value: "two files" } },
    ],
  },
];

const scope = cacheScope({ sessionId: "s" });
const scoped: Partial<LanguageModelV3CallOptions> = {
  prompt: conversation,
  tools,
  providerOptions: { turnkeeper: { cacheScope: scope } },
};

const compatible = async (traits: ModelTraits, name = "m"): Promise<[LoopbackServer, ResolvedModel]> => {
  const server = await streamServer(chatText, "openai");
  const model = await opened(`openai-compatible/${name}`, {
    providers: { "openai-compatible": { baseUrl: `${server.url}/v1` } },
    models: { [`openai-compatible/${name}`]: traits },
  });
  return [server, model];
};

const bodyWith = async (
  traits: ModelTraits,
  options: Partial<LanguageModelV3CallOptions>,
  name?: string,
): Promise<Record<string, unknown>> => {
  const [server, model] = await compatible(traits, name);
  await streamParts(model.languageModel, options);
  return server.requests[0]!.body;
};

describe("a request to a model", () => {
  it("about which nothing is known goes out as it came, and what was said to this package does not", async () => {
    const body = await bodyWith({}, scoped);
    expect(Object.keys(body).sort()).toEqual(["messages", "model", "stream", "stream_options", "tools"]);
    expect(JSON.stringify(body)).not.toContain(scope);
  });

  it("with a bound of its answers names the bound, in the field that the server knows", async () => {
    expect(await bodyWith({ outputTokensMax: 900 }, {})).toMatchObject({ max_tokens: 900 });
    expect(await bodyWith({ outputTokensMax: 900 }, { maxOutputTokens: 50 })).toMatchObject({ max_tokens: 50 });
    const renamed = await bodyWith({ outputTokensMax: 900 }, {}, "openai/gpt-5-mini");
    expect(renamed).toMatchObject({ max_completion_tokens: 900 });
    expect(renamed["max_tokens"]).toBeUndefined();
    const own = await bodyWith({ outputTokensMax: 900, outputLimitField: "max_tokens" }, {}, "gpt-5");
    expect(own).toMatchObject({ max_tokens: 900 });
  });

  it("without tools carries none, and tells of calls that were made in words, turn by turn", async () => {
    const body = await bodyWith({ takesTools: false }, { ...scoped, toolChoice: { type: "auto" } });
    expect(body["tools"]).toBeUndefined();
    expect(body["tool_choice"]).toBeUndefined();
    expect(body["messages"]).toMatchObject([
      { role: "system" },
      { role: "user" },
      { role: "assistant", content: expect.stringContaining('(I called look with {"path":"a"}.)') },
      { role: "user", content: expect.stringContaining("(Result of look: two files)") },
    ]);
  });

  it("without a system message gets its words in the user's first", async () => {
    const body = await bodyWith({}, { prompt: conversation.slice(0, 2) }, "gemma:2b");
    const [first, ...rest] = body["messages"] as { role: string }[];
    expect(first).toMatchObject({ role: "user" });
    expect(JSON.stringify(first)).toMatch(/Be brief\..*What is here\?/);
    expect(rest).toEqual([]);
  });

  it("that calls one at a time is told so where there are tools, in each format", async () => {
    const traits = { callsInParallel: false };
    expect(await bodyWith(traits, { tools })).toMatchObject({ parallel_tool_calls: false });
    expect((await bodyWith(traits, {}))["parallel_tool_calls"]).toBeUndefined();
    const claude = await anthropicBody({ tools, prompt: conversation }, traits);
    expect(claude).toMatchObject({ tool_choice: { disable_parallel_tool_use: true } });
    const responses = await responsesBody({ tools }, traits);
    expect(responses).toMatchObject({ parallel_tool_calls: false });
  });
});

async function anthropicBody(
  options: Partial<LanguageModelV3CallOptions>,
  traits: ModelTraits = {},
): Promise<Record<string, unknown>> {
  const server = await httpServer((_request, response) => {
    startStream(response);
    response.end(bodyOf(anthropicText, "anthropic"));
  });
  const model = await opened("anthropic/claude-x", {
    env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: server.url },
    models: { "anthropic/claude-x": traits },
  });
  await streamParts(model.languageModel, options);
  return server.requests[0]!.body;
}

async function responsesBody(
  options: Partial<LanguageModelV3CallOptions>,
  traits: ModelTraits = {},
): Promise<Record<string, unknown>> {
  const server = await streamServer(responsesCall, "anthropic");
  const model = await opened("openai/gpt-x", {
    env: { OPENAI_API_KEY: "key-1" },
    providers: { openai: { baseUrl: `${server.url}/v1`, api: "responses" } },
    models: { "openai/gpt-x": traits },
  });
  await streamParts(model.languageModel, options);
  return server.requests[0]!.body;
}

describe("the cache of a conversation", () => {
  it("is marked for Anthropic behind the tools, the system's words and the last message, and nowhere else", async () => {
    const body = await anthropicBody(scoped);
    const mark = { cache_control: { type: "ephemeral" } };
    expect(body["system"]).toMatchObject([mark]);
    expect(body["tools"]).toMatchObject([{ name: "list" }, { name: "look", ...mark }]);
    const messages = body["messages"] as { content: object[] }[];
    expect(messages.at(-1)).toMatchObject({ role: "user", content: [{ type: "tool_result", ...mark }] });
    expect(JSON.stringify(body).match(/cache_control/g)).toHaveLength(3);
    expect(JSON.stringify(body)).not.toContain(scope);
  });

  it("is not marked for a request of no conversation, which nobody will repeat", async () => {
    const body = await anthropicBody({ prompt: conversation, tools });
    expect(JSON.stringify(body)).not.toContain("cache_control");
  });

  it("is not marked where the user does not want it", async () => {
    expect(JSON.stringify(await anthropicBody(scoped, { cache: "none" }))).not.toContain("cache_control");
  });

  it("is named by its scope where the server takes a key, in each of OpenAI's formats", async () => {
    expect(await responsesBody(scoped, { cache: "key" })).toMatchObject({ prompt_cache_key: scope });
    expect(await bodyWith({ cache: "key" }, scoped)).toMatchObject({ prompt_cache_key: scope });
    expect((await responsesBody({ ...scoped, providerOptions: {} }, { cache: "key" }))["prompt_cache_key"]).toBe(
      undefined,
    );
  });

  it("is named in a header where the server takes that, and a header of the caller's own stays", async () => {
    const [server, model] = await compatible({ cache: "conversation-header" });
    await streamParts(model.languageModel, { ...scoped, headers: { "x-own": "1" } });
    expect(server.requests[0]!.headers).toMatchObject({ "x-grok-conv-id": scope, "x-own": "1" });
  });

  it("leaves the caller's request as it is", () => {
    const request = { prompt: conversation, tools, ...scoped } as LanguageModelV3CallOptions;
    const before = structuredClone(request);
    shapedRequest(request, {
      traits: { cache: "breakpoints", takesSystem: false, takesTools: false, outputTokensMax: 1 },
      format: "anthropic",
      optionsName: "anthropic",
    });
    expect(request).toEqual(before);
  });
});
