import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { CodedError } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";
import { bodyOf, eventOf, httpServer, socketServer, startStream } from "./loopback-server.ts";
import type { LoopbackServer, WireFormat } from "./loopback-server.ts";
import { answerOf, compatibleAt, opened, prompt, streamParts } from "./model-answer.ts";
import { anthropicCall, anthropicText, chatCalls, chatChunk, chatText, responsesCall } from "./written-streams.ts";

type Format = "chat" | "anthropic" | "responses";

const wire: Readonly<Record<Format, WireFormat>> = { chat: "openai", anthropic: "anthropic", responses: "anthropic" };

function modelAt(url: string, format: Format): Promise<ResolvedModel> {
  if (format === "chat") return compatibleAt(url);
  if (format === "anthropic")
    return opened("anthropic/claude-x", { env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: url } });
  return opened("openai/gpt-x", {
    env: { OPENAI_API_KEY: "key-1" },
    providers: { openai: { baseUrl: `${url}/v1`, api: "responses" } },
  });
}

/** Reads to the end and answers both what came and how it failed. */
async function read(
  model: ResolvedModel,
): Promise<{ readonly parts: LanguageModelV3StreamPart[]; readonly error: CodedError | undefined }> {
  const parts: LanguageModelV3StreamPart[] = [];
  try {
    const { stream } = await model.languageModel.doStream({ prompt });
    for await (const part of stream) parts.push(part);
    return { parts, error: undefined };
  } catch (error) {
    if (!CodedError.is(error)) throw error;
    return { parts, error };
  }
}

const serve = (body: string): Promise<LoopbackServer> =>
  httpServer((_request, response) => {
    startStream(response);
    response.end(body);
  });

const formats: readonly (readonly [Format, readonly string[]])[] = [
  ["chat", chatText],
  ["chat", chatCalls],
  ["anthropic", anthropicCall],
  ["anthropic", anthropicText],
  ["responses", responsesCall],
];

describe.each(formats)("a %s stream that ends too soon", (format, lines) => {
  // The end of the answer is its last event, or for the chat format the one with finish_reason.
  const endIndex = lines.findIndex((line) => /"finish_reason":"|message_stop|response\.completed/.test(line));

  it("is an error wherever it is cut cleanly, and never an answer", async () => {
    for (let count = 0; count <= endIndex; count++) {
      const server = await serve(
        lines
          .slice(0, count)
          .map((line) => eventOf(line, wire[format]))
          .join(""),
      );
      const { parts, error } = await read(await modelAt(server.url, format));
      expect(error, `cut after ${count} events`).toMatchObject({
        code: "MODEL_STREAM_CUT",
        context: { retryable: true },
      });
      expect(
        parts.filter((part) => part.type === "finish" || part.type === "tool-call" || part.type === "error"),
      ).toEqual([]);
    }
  });

  it("is an error also with the closing line of the format behind it", async () => {
    const server = await serve(
      `${lines
        .slice(0, endIndex)
        .map((line) => eventOf(line, wire[format]))
        .join("")}data: [DONE]\n\n`,
    );
    const { error } = await read(await modelAt(server.url, format));
    expect(error).toMatchObject({ code: "MODEL_STREAM_CUT" });
  });

  it("control: without the guard the SDK alone calls the same cut an end, or says nothing", async () => {
    const server = await serve(
      lines
        .slice(0, endIndex)
        .map((line) => eventOf(line, wire[format]))
        .join(""),
    );
    const baseURL = `${server.url}/v1`;
    const bare =
      format === "chat"
        ? createOpenAICompatible({ name: "bare", baseURL }).chatModel("m")
        : format === "anthropic"
          ? createAnthropic({ baseURL, apiKey: "key-1" }).messages("m")
          : createOpenAI({ baseURL, apiKey: "key-1" }).responses("m");
    const parts = await streamParts(bare);
    // No throw, and what tells the cut from an end is an `error` part, a reason nobody gave, or a part that is missing.
    expect(parts.length).toBeGreaterThan(1);
    expect(format === "anthropic" ? answerOf(parts).finish : answerOf(parts).raw).toBe(
      format === "anthropic" ? "none" : undefined,
    );
  });

  it.each(["reset", "half-closed", "cut inside an event"])("is an error when the connection is %s", async (how) => {
    const body = lines
      .slice(0, endIndex)
      .map((line) => eventOf(line, wire[format]))
      .join("");
    const sent = how === "cut inside an event" ? body.slice(0, -9) : body;
    const server = await socketServer((socket) => {
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${Buffer.byteLength(sent).toString(16)}\r\n${sent}\r\n`,
        () => (how === "reset" ? socket.resetAndDestroy() : socket.end()),
      );
    });
    const { parts, error } = await read(await modelAt(server.url, format));
    // A reset may overtake the headers; then there was no answer at all.
    expect(["MODEL_STREAM_CUT", ...(how === "reset" ? ["MODEL_UNREACHABLE"] : [])]).toContain(error?.code);
    expect(parts.some((part) => part.type === "finish")).toBe(false);
  });
});

it("takes a reply without a length and without chunks, ended by the close, for complete when the answer is", async () => {
  const server = await socketServer((socket) =>
    socket.end(
      `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n${bodyOf(chatText, "openai")}`,
    ),
  );
  const { parts, error } = await read(await compatibleAt(server.url));
  expect(error).toBeUndefined();
  expect(answerOf(parts).text).toBe("Grüße, 世界!");
});

it("takes an answer without [DONE] for complete when its finish_reason came", async () => {
  const server = await serve(chatText.map((line) => eventOf(line, "openai")).join(""));
  expect(answerOf(await streamParts((await compatibleAt(server.url)).languageModel)).finish).toBe("stop");
});

describe("a server that keeps the connection open behind a complete answer", () => {
  it.each<[Format, readonly string[]]>([
    ["chat", chatCalls],
    ["anthropic", anthropicCall],
  ])("does not hold the %s answer up", async (format, lines) => {
    const server = await httpServer((_request, response) => {
      startStream(response);
      response.write(bodyOf(lines, wire[format]));
    });
    const model = await modelAt(server.url, format);
    expect(answerOf(await streamParts(model.languageModel)).finish).toBe("tool-calls");
    await model.close();
    await (
      await server.firstRequest
    ).closed;
  });

  it("finds the closing line in packets of any size", async () => {
    for (const size of [1, 3, 11, 4096]) {
      const body = Buffer.from(bodyOf(chatText, "openai"));
      const server = await httpServer((_request, response) => {
        startStream(response);
        for (let at = 0; at < body.length; at += size) response.write(body.subarray(at, at + size));
      });
      const model = await compatibleAt(server.url);
      expect(answerOf(await streamParts(model.languageModel)).text).toBe("Grüße, 世界!");
    }
  });
});

it("does not take the closing line's words inside the text for the closing line", async () => {
  const lines = [
    chatChunk({ role: "assistant", content: "A\ndata: [DONE]" }),
    chatChunk({ content: "\n\nB" }),
    chatChunk({}, "stop"),
  ];
  const server = await httpServer((_request, response) => {
    startStream(response);
    for (const line of lines) response.write(eventOf(line, "openai"));
    response.end("data: [DONE]\n\n");
  });
  expect(answerOf(await streamParts((await compatibleAt(server.url)).languageModel)).text).toBe("A\ndata: [DONE]\n\nB");
});

it("uses the connection of a finished answer again", async () => {
  for (const [format, lines] of [
    ["chat", chatText],
    ["anthropic", anthropicText],
  ] as const) {
    const ports = new Set<number | undefined>();
    const server = await httpServer((_request, response) => {
      ports.add(response.socket?.remotePort);
      startStream(response);
      response.end(bodyOf(lines, wire[format]));
    });
    const model = await modelAt(server.url, format);
    await streamParts(model.languageModel);
    // The rest of the first body is read in the background; the answer to a second request is behind it.
    await new Promise((resolve) => setImmediate(resolve));
    await streamParts(model.languageModel);
    expect([format, server.requests.length, ports.size]).toEqual([format, 2, 1]);
  }
});

describe("an answer that ends properly and says nothing", () => {
  it.each<[string, readonly string[], string | undefined]>([
    ["no text", [chatChunk({ role: "assistant", content: "" }), chatChunk({}, "stop")], "MODEL_EMPTY"],
    ["white space only", [chatChunk({ role: "assistant", content: " \n" }), chatChunk({}, "stop")], "MODEL_EMPTY"],
    [
      "reasoning only",
      [chatChunk({ role: "assistant", reasoning_content: "Hm." }), chatChunk({}, "stop")],
      "MODEL_EMPTY",
    ],
    [
      "the promise of tool calls and none",
      [chatChunk({ role: "assistant", content: "" }), chatChunk({}, "tool_calls")],
      "MODEL_EMPTY",
    ],
    ["reasoning up to the length limit", [chatChunk({ reasoning_content: "Hm." }), chatChunk({}, "length")], undefined],
    ["a content filter", [chatChunk({ role: "assistant", content: "" }), chatChunk({}, "content_filter")], undefined],
  ])("with %s", async (_what, lines, code) => {
    const server = await serve(bodyOf(lines, "openai"));
    const { error } = await read(await compatibleAt(server.url));
    expect(error?.code).toBe(code);
  });
});

describe("an error inside a stream", () => {
  const inStream = (error: object): string[] => [
    chatChunk({ role: "assistant", content: "Par" }),
    JSON.stringify({ error }),
  ];

  it.each<[string, object, string, boolean]>([
    ["server_error", { message: "boom", type: "server_error", code: null }, "MODEL_SERVER", true],
    ["no type at all", { message: "boom" }, "MODEL_SERVER", true],
    [
      "a rate limit",
      { message: "slow down", type: "requests", code: "rate_limit_exceeded" },
      "MODEL_RATE_LIMITED",
      true,
    ],
    ["no quota", { message: "pay", type: "insufficient_quota", code: "insufficient_quota" }, "MODEL_QUOTA", false],
    [
      "a proven overflow",
      { message: "This model's maximum context length is 8192 tokens.", type: "invalid_request_error", code: 400 },
      "MODEL_CONTEXT_OVERFLOW",
      false,
    ],
    ["an invalid request", { message: "no", type: "invalid_request_error" }, "MODEL_BAD_REQUEST", false],
  ])("of the chat format, %s, is that error", async (_what, payload, code, retryable) => {
    const server = await serve(bodyOf(inStream(payload), "openai"));
    const { parts, error } = await read(await compatibleAt(server.url));
    expect(error).toMatchObject({ code, context: { retryable } });
    expect(answerOf(parts).text).toBe("Par");
    expect(parts.some((part) => part.type === "error" || part.type === "finish")).toBe(false);
  });

  it.each<[string, string, boolean]>([
    ["overloaded_error", "MODEL_OVERLOADED", true],
    ["rate_limit_error", "MODEL_RATE_LIMITED", true],
    ["api_error", "MODEL_SERVER", true],
    ["invalid_request_error", "MODEL_BAD_REQUEST", false],
  ])("of the Anthropic format, %s, is that error, first or later", async (type, code, retryable) => {
    const event = JSON.stringify({ type: "error", error: { type, message: "Sorry" } });
    for (const lines of [[event], [...anthropicText.slice(0, 3), event]]) {
      const server = await serve(bodyOf(lines, "anthropic"));
      const { error } = await read(await modelAt(server.url, "anthropic"));
      expect(error).toMatchObject({ code, context: { retryable } });
    }
  });

  it("closes the connection, though the server would go on", async () => {
    const server = await httpServer((_request, response) => {
      startStream(response);
      response.write(
        inStream({ message: "boom", type: "server_error" })
          .map((line) => eventOf(line, "openai"))
          .join(""),
      );
    });
    const { error } = await read(await compatibleAt(server.url));
    expect(error).toMatchObject({ code: "MODEL_SERVER" });
    await (
      await server.firstRequest
    ).closed;
  });

  it.each(["not json", '{"choices":"none"}', "[]"])(
    "that is no event of the format (%s) fails the answer instead of shortening it",
    async (line) => {
      const server = await serve(
        `${eventOf(chatText[1]!, "openai")}data: ${line}\n\n${bodyOf(chatText.slice(2), "openai")}`,
      );
      const { error } = await read(await compatibleAt(server.url));
      expect(error).toMatchObject({ code: "MODEL_BAD_RESPONSE", context: { retryable: true } });
    },
  );
});
