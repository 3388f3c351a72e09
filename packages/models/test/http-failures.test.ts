import { createServer } from "node:net";
import { CodedError } from "@turnkeeper/kernel";
import type { ModelErrorCode } from "@turnkeeper/models";
import { describeModelError } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";
import { httpServer, socketServer, startStream } from "./loopback-server.ts";
import type { LoopbackServer } from "./loopback-server.ts";
import { compatibleAt, opened, streamParts } from "./model-answer.ts";

const reply = (status: number, body: string | object, headers: Record<string, string> = {}): Promise<LoopbackServer> =>
  httpServer((_request, response) => {
    const isText = typeof body === "string";
    response.writeHead(status, { "content-type": isText ? "text/html" : "application/json", ...headers });
    response.end(isText ? body : JSON.stringify(body));
  });

async function failureAt(url: string, provider: "chat" | "anthropic" = "chat"): Promise<CodedError> {
  const model =
    provider === "chat"
      ? await compatibleAt(url)
      : await opened("anthropic/claude-x", { env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: url } });
  const error: unknown = await streamParts(model.languageModel).catch((reason: unknown) => reason);
  if (!CodedError.is(error)) throw new Error("expected a coded error", { cause: error });
  expect(error.message).not.toMatch(/[\r\n]/);
  return error;
}

const openaiError = (message: string, type: string, code: string | number | null = null): object => ({
  error: { message, type, param: null, code },
});

describe("a status", () => {
  it.each<[number, string | object, ModelErrorCode, boolean, string]>([
    [
      401,
      openaiError("Incorrect API key provided", "invalid_request_error", "invalid_api_key"),
      "MODEL_AUTH",
      false,
      "(HTTP 401, invalid_request_error, invalid_api_key)",
    ],
    [403, "<h1>Forbidden</h1>", "MODEL_AUTH", false, "(HTTP 403)"],
    [
      402,
      openaiError("Insufficient Balance", "unknown_error"),
      "MODEL_QUOTA",
      false,
      'It said: "Insufficient Balance".',
    ],
    [
      404,
      openaiError("The model `x` does not exist", "invalid_request_error", "model_not_found"),
      "MODEL_NOT_FOUND",
      false,
      "is not known at 127.0.0.1:",
    ],
    [404, "<html>nginx</html>", "MODEL_NOT_FOUND", false, "Check the model's name and the base URL"],
    [
      404,
      { error: 'model "llama9" not found, try pulling it first' },
      "MODEL_NOT_FOUND",
      false,
      "try pulling it first",
    ],
    [
      400,
      openaiError("Unsupported parameter: 'max_tokens'", "invalid_request_error", "unsupported_parameter"),
      "MODEL_BAD_REQUEST",
      false,
      "Unsupported parameter: 'max_tokens'",
    ],
    [
      400,
      {
        object: "error",
        message: '"auto" tool choice requires --enable-auto-tool-choice',
        type: "BadRequestError",
        code: 400,
      },
      "MODEL_BAD_REQUEST",
      false,
      "--enable-auto-tool-choice",
    ],
    [422, { detail: "Input should be a valid list" }, "MODEL_BAD_REQUEST", false, "Input should be a valid list"],
    [418, "", "MODEL_BAD_REQUEST", false, "(HTTP 418)"],
    [408, "", "MODEL_TIMEOUT", true, "(HTTP 408)"],
    [
      429,
      openaiError("Rate limit reached", "requests", "rate_limit_exceeded"),
      "MODEL_RATE_LIMITED",
      true,
      "Try again later.",
    ],
    [
      429,
      openaiError("You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
      "MODEL_QUOTA",
      false,
      "waiting does not help",
    ],
    [
      500,
      openaiError("The server had an error", "server_error"),
      "MODEL_SERVER",
      true,
      "failed on the provider's side (HTTP 500, server_error)",
    ],
    [502, "<html><body>Bad gateway</body></html>", "MODEL_SERVER", true, "(HTTP 502)"],
    [503, "", "MODEL_OVERLOADED", true, "is overloaded (HTTP 503)"],
    [504, "", "MODEL_TIMEOUT", true, "(HTTP 504)"],
    [529, "", "MODEL_OVERLOADED", true, "(HTTP 529)"],
  ])("%d with %j is %s", async (status, body, code, retryable, part) => {
    const error = await failureAt((await reply(status, body)).url);
    expect(error).toMatchObject({ code, context: { model: "openai-compatible/some-model", retryable } });
    expect(error.message).toMatch(/^openai-compatible\/some-model /);
    expect(error.message).toContain(part);
    expect(error.message).not.toMatch(/[<>]/);
    // Another model may answer, unless it is the request that is wrong.
    const isOfRoute = code !== "MODEL_BAD_REQUEST";
    expect(describeModelError(error)).toEqual({ code, retryable, isOfRoute, message: error.message });
  });

  it.each<[number, string, ModelErrorCode, boolean]>([
    [401, "authentication_error", "MODEL_AUTH", false],
    [403, "permission_error", "MODEL_AUTH", false],
    [404, "not_found_error", "MODEL_NOT_FOUND", false],
    [413, "request_too_large", "MODEL_CONTEXT_OVERFLOW", false],
    [429, "rate_limit_error", "MODEL_RATE_LIMITED", true],
    [402, "billing_error", "MODEL_QUOTA", false],
    [500, "api_error", "MODEL_SERVER", true],
    [529, "overloaded_error", "MODEL_OVERLOADED", true],
  ])("%d of the Anthropic format, %s, is %s", async (status, type, code, retryable) => {
    const error = await failureAt(
      (await reply(status, { type: "error", error: { type, message: "Sorry." } })).url,
      "anthropic",
    );
    expect(error).toMatchObject({ code, context: { model: "anthropic/claude-x", retryable } });
    expect(error.message).toContain(`(HTTP ${status}, ${type})`);
  });

  it.each<["chat" | "anthropic", string]>([
    ["anthropic", "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1."],
    ["anthropic", "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."],
    [
      "chat",
      "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
    ],
    [
      "chat",
      "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    ],
  ])(
    "400 for calls and results that do not pair is the request's fault, not the key's: %s, %s",
    async (format, message) => {
      const type = "invalid_request_error";
      const body = format === "chat" ? openaiError(message, type) : { type: "error", error: { type, message } };
      const error = await failureAt((await reply(400, body)).url, format);
      expect(describeModelError(error)).toMatchObject({
        code: "MODEL_BAD_REQUEST",
        retryable: false,
        isOfRoute: false,
      });
    },
  );

  it("400 for an account without credit is no malformed request", async () => {
    const message = "Your credit balance is too low to access the Anthropic API.";
    const server = await reply(400, { type: "error", error: { type: "invalid_request_error", message } });
    expect(await failureAt(server.url, "anthropic")).toMatchObject({
      code: "MODEL_QUOTA",
      context: { retryable: false },
    });
  });

  it("that refuses the key names the variable, and says when it was not set", async () => {
    const { url } = await reply(401, "");
    const message = async (env: Record<string, string>): Promise<string> => {
      const providers = { "openai-compatible": { baseUrl: url, apiKeyEnv: "SOME_KEY" } };
      const model = await opened("openai-compatible/m", { env, providers });
      const error: unknown = await streamParts(model.languageModel).catch((reason: unknown) => reason);
      return describeModelError(error).message;
    };
    expect(await message({ SOME_KEY: "key-1" })).toBe(
      "openai-compatible/m refused the request's key (HTTP 401). Check SOME_KEY and what that key is allowed to use.",
    );
    expect(await message({})).toContain("No key was sent, because SOME_KEY is not set: set it.");
  });

  it("is tried exactly once", async () => {
    for (const status of [408, 429, 500, 503]) {
      const server = await reply(status, "", { "retry-after": "0" });
      await failureAt(server.url);
      expect(server.requests).toHaveLength(1);
    }
  });
});

describe("a conversation that is too long", () => {
  it.each<[string, number, object]>([
    ["OpenAI", 400, openaiError("Your input exceeds the limit", "invalid_request_error", "context_length_exceeded")],
    [
      "vLLM",
      400,
      {
        object: "error",
        message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        type: "BadRequestError",
        code: 400,
      },
    ],
    [
      "llama.cpp",
      400,
      openaiError(
        "the request exceeds the available context size, try increasing it",
        "exceed_context_size_error",
        400,
      ),
    ],
    [
      "xAI",
      400,
      {
        code: "Client specified an invalid argument",
        error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      },
    ],
    [
      "Anthropic",
      400,
      {
        type: "error",
        error: { type: "invalid_request_error", message: "prompt is too long: 208310 tokens > 200000 maximum" },
      },
    ],
    [
      "Anthropic with an output limit",
      400,
      {
        type: "error",
        error: {
          type: "invalid_request_error",
          message: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        },
      },
    ],
    [
      "Mistral",
      400,
      {
        object: "error",
        message:
          "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        type: "invalid_request_prompt",
        code: "3051",
      },
    ],
    [
      "Google",
      400,
      openaiError(
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048575).",
        "invalid_request_error",
        400,
      ),
    ],
  ])("is proven by what %s says", async (_provider, status, body) => {
    expect(await failureAt((await reply(status, body)).url)).toMatchObject({
      code: "MODEL_CONTEXT_OVERFLOW",
      context: { retryable: false },
    });
  });

  it("is not read into a rate limit that speaks of tokens, nor into a plain 400", async () => {
    const tokensPerMinute = openaiError(
      "Request too large for model in organization on tokens per minute (TPM): Limit 6000",
      "tokens",
      "rate_limit_exceeded",
    );
    expect(await failureAt((await reply(413, tokensPerMinute)).url)).toMatchObject({ code: "MODEL_RATE_LIMITED" });
    expect(await failureAt((await reply(429, openaiError("maximum context length", "x"))).url)).toMatchObject({
      code: "MODEL_RATE_LIMITED",
    });
    expect(
      await failureAt(
        (await reply(400, openaiError("messages with role 'tool' must follow tool_calls", "invalid_request_error")))
          .url,
      ),
    ).toMatchObject({ code: "MODEL_BAD_REQUEST" });
  });
});

describe("how long a provider asks to wait", () => {
  const date = "Mon, 01 Jun 2026 10:00:00 GMT";
  it.each<[string, Record<string, string>, number | undefined]>([
    ["seconds", { "retry-after": "2" }, 2000],
    ["a part of a second", { "retry-after": "0.25" }, 250],
    ["milliseconds, which win", { "retry-after": "9", "retry-after-ms": "1234" }, 1234],
    ["a date, against the reply's own", { "retry-after": "Mon, 01 Jun 2026 10:00:45 GMT", date }, 45_000],
    ["a date that has passed", { "retry-after": "Mon, 01 Jun 2026 09:00:00 GMT", date }, 0],
    ["a negative number", { "retry-after": "-5" }, undefined],
    ["a word", { "retry-after": "soon" }, undefined],
    ["nothing", {}, undefined],
  ])("is read from %s", async (_what, headers, retryAfterMs) => {
    const error = await failureAt(
      (await reply(429, openaiError("slow down", "requests", "rate_limit_exceeded"), headers)).url,
    );
    expect(describeModelError(error).retryAfterMs).toBe(retryAfterMs);
    if (retryAfterMs === 2000) expect(error.message).toContain("It asks to wait 2 s.");
  });
});

describe("a good status that is no stream", () => {
  it.each<[string, string, string, ModelErrorCode, string]>([
    [
      "a portal's page",
      "text/html; charset=utf-8",
      "<html>Log in</html>",
      "MODEL_BAD_RESPONSE",
      "was answered with text/html instead of an event stream",
    ],
    [
      "a JSON document",
      "application/json",
      '{"id":"1","choices":[]}',
      "MODEL_BAD_RESPONSE",
      "was answered with application/json",
    ],
    [
      "a JSON error",
      "application/problem+json",
      '{"error":{"message":"no route","type":"routing"}}',
      "MODEL_BAD_RESPONSE",
      'It said: "no route".',
    ],
    [
      "a page without a type",
      "text/plain",
      "<html>Log in</html>",
      "MODEL_STREAM_CUT",
      "stopped before the end of its answer",
    ],
    ["nothing at all", "text/event-stream", "", "MODEL_STREAM_CUT", "stopped before the end of its answer"],
  ])("%s is an error", async (_what, contentType, body, code, part) => {
    const error = await failureAt((await reply(200, body, { "content-type": contentType })).url);
    expect(error).toMatchObject({ code });
    expect(error.message).toContain(part);
  });

  it("a 204 is an error", async () => {
    const server = await httpServer((_request, response) => void response.writeHead(204).end());
    expect(await failureAt(server.url)).toMatchObject({ code: "MODEL_STREAM_CUT" });
  });

  it("a stream under a sloppy name is let through", async () => {
    const server = await httpServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      response.end(
        'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
      );
    });
    const model = await compatibleAt(server.url);
    expect((await streamParts(model.languageModel)).at(-1)).toMatchObject({ type: "finish" });
  });
});

it("a redirect is not followed, so that no key travels to another host", async () => {
  const other = await httpServer((_request, response) => void response.end());
  for (const status of [301, 302, 307, 308]) {
    const server = await reply(status, "", { location: `${other.url}/v1/chat/completions` });
    const error = await failureAt(server.url);
    expect(error).toMatchObject({ code: "MODEL_BAD_RESPONSE", context: { retryable: false } });
    expect(error.message).toContain(`redirect at ${new URL(other.url).host}`);
  }
  expect(other.requests).toEqual([]);
});

it("an endless error body is read to 64 KiB, and its connection closed", async () => {
  let sentBytes = 0;
  const server = await httpServer((_request, response) => {
    response.writeHead(500, { "content-type": "application/json" });
    const block = Buffer.alloc(16 * 1024, "x");
    const pour = (): void => {
      while (!response.destroyed && response.write(block)) sentBytes += block.length;
      if (!response.destroyed) response.once("drain", pour);
    };
    pour();
  });
  expect(await failureAt(server.url)).toMatchObject({ code: "MODEL_SERVER" });
  await (
    await server.firstRequest
  ).closed;
  // What the kernel's buffers took on loopback, and no more: without the bound it would pour on.
  expect(sentBytes).toBeLessThan(64 * 1024 * 1024);
});

describe("no connection", () => {
  it("refused names the address", async () => {
    const probe = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => probe.once("listening", resolve));
    const address = probe.address();
    const port = typeof address === "object" && address ? address.port : 0;
    await new Promise((resolve) => probe.close(resolve));
    const error = await failureAt(`http://127.0.0.1:${port}`);
    expect(error).toMatchObject({ code: "MODEL_UNREACHABLE", context: { retryable: true } });
    expect(error.message).toContain(`could not be reached at 127.0.0.1:${port} (ECONNREFUSED)`);
  });

  it("because this process may open no more files says so, and may be tried again", () => {
    const cause = Object.assign(new Error("connect EMFILE 127.0.0.1:80"), { code: "EMFILE", syscall: "connect" });
    const error = describeModelError(new TypeError("fetch failed", { cause }));
    expect(error).toMatchObject({ code: "MODEL_UNREACHABLE", retryable: true });
    expect(error.message).toMatch(/\(EMFILE\).*raise the limit \(ulimit -n\)/);
  });

  it("because no such host exists says so", async () => {
    const error = await failureAt("http://no-such-host.invalid");
    expect(error).toMatchObject({ code: "MODEL_UNREACHABLE" });
    expect(error.message).toMatch(/at no-such-host\.invalid \((?:ENOTFOUND|EAI_AGAIN)\)/);
  });

  it("closed without a word is unreachable", async () => {
    const server = await socketServer((socket) => socket.end());
    expect(await failureAt(server.url)).toMatchObject({ code: "MODEL_UNREACHABLE" });
  });

  it("something that does not speak HTTP is a bad response", async () => {
    const server = await socketServer((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"));
    expect(await failureAt(server.url)).toMatchObject({ code: "MODEL_BAD_RESPONSE" });
  });

  it("TLS against a plain server is not worth a retry", async () => {
    const server = await httpServer((_request, response) => startStream(response));
    expect(await failureAt(server.url.replace("http:", "https:"))).toMatchObject({
      code: "MODEL_UNREACHABLE",
      context: { retryable: false },
    });
  });
});
