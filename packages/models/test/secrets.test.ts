import { inspect } from "node:util";
import type { LanguageModelV3Prompt } from "@ai-sdk/provider";
import { systemHost } from "@turnkeeper/kernel";
import { customModel, describeModelError, resolveModel } from "@turnkeeper/models";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { quotable } from "../src/quotation.ts";
import { eventOf, httpServer, socketServer, startStream } from "./loopback-server.ts";
import { opened, streamParts } from "./model-answer.ts";
import { chatChunk } from "./written-streams.ts";

const key = "sk-canary-KEY-7f3a91c2e4";
const secretWords = "the launch code is CANARY-PROMPT-4711 and nobody may know";
const shortSecret = "hunter2!";
const system = "You keep CANARY-SYSTEM-0815 to yourself in every single case.";
const toolWords = "CANARY-TOOL-0042 stands in the file that was read";
const canaries = [
  key,
  "KEY-7f3a91c2e4",
  "CANARY-PROMPT-4711",
  "CANARY-SYSTEM-0815",
  "CANARY-TOOL-0042",
  secretWords,
  shortSecret,
  "CANARY-HEADER-1",
  "CANARY-COOKIE-2",
];

const prompt: LanguageModelV3Prompt = [
  { role: "system", content: system },
  {
    role: "user",
    content: [
      { type: "text", text: secretWords },
      { type: "text", text: shortSecret },
    ],
  },
  {
    role: "assistant",
    content: [
      { type: "tool-call", toolCallId: "c1", toolName: "read_file", input: { path: "CANARY-PROMPT-4711.txt" } },
    ],
  },
  {
    role: "tool",
    content: [
      { type: "tool-result", toolCallId: "c1", toolName: "read_file", output: { type: "text", value: toolWords } },
    ],
  },
];

/** Everything a logger might make of an error. */
function traces(error: unknown): string {
  const all = [
    inspect(error, { depth: 20, showHidden: true }),
    JSON.stringify(error),
    String(error),
    inspect(describeModelError(error), { depth: 20 }),
  ];
  for (let cause = error; cause instanceof Error; cause = cause.cause) all.push(cause.message, cause.stack ?? "");
  return all.join("\n");
}

function expectClean(error: unknown): void {
  const text = traces(error);
  for (const canary of canaries) expect(text, `leaked ${canary}`).not.toContain(canary);
}

const models = (url: string): readonly (readonly [string, object])[] => [
  [
    "openai-compatible/m",
    { env: { CANARY: key }, providers: { "openai-compatible": { baseUrl: url, apiKeyEnv: "CANARY" } } },
  ],
  ["anthropic/m", { env: { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: url } }],
  ["openai/m", { env: { OPENAI_API_KEY: key }, providers: { openai: { baseUrl: url, api: "responses" } } }],
];

async function failAt(url: string): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const [name, options] of models(url)) {
    const model = await opened(name, { ...options, silenceMs: 100, graceMs: 0 });
    const outcome: unknown = await streamParts(model.languageModel, {
      prompt,
      headers: { "x-extra": "CANARY-HEADER-1" },
    }).catch((error: unknown) => error);
    expect(outcome).toBeInstanceOf(Error);
    failures.push(outcome);
  }
  return failures;
}

/** Bodies in which a server repeats what it was sent, as echoing proxies and validators do. */
const echoes: readonly ((request: { readonly headers: object; readonly body: object }) => string)[] = [
  ({ headers }) =>
    JSON.stringify({
      error: {
        message: `Incorrect API key provided: ${key}. ${JSON.stringify(headers)}`,
        type: "invalid_request_error",
        code: key,
      },
    }),
  ({ body }) =>
    JSON.stringify({
      error: {
        message: `Invalid request: ${JSON.stringify(body)}`,
        type: "invalid_request_error",
        param: "CANARY-PROMPT-4711",
      },
    }),
  () =>
    JSON.stringify({
      error: {
        message: `messages[1] "${secretWords}" is not allowed; nor is ${shortSecret}`,
        type: "invalid_request_error",
      },
    }),
  () => JSON.stringify({ error: `${toolWords} (CANARY-TOOL-0042) ${system}` }),
  ({ headers, body }) => `<html>${JSON.stringify({ headers, body })}</html>`,
];

describe("no key, header or word of the conversation is in what a failed call leaves", () => {
  it.each([400, 401, 404, 429, 500])("by status %d", async (status) => {
    for (const echo of echoes) {
      const server = await httpServer((request, response) => {
        response.writeHead(status, {
          "content-type": "application/json",
          "x-request-id": "CANARY-HEADER-1",
          "set-cookie": "CANARY-COOKIE-2",
        });
        response.end(echo(request));
      });
      for (const error of await failAt(server.url)) expectClean(error);
    }
  });

  it("by a page or a document with a good status", async () => {
    for (const contentType of ["text/html", "application/json", "text/plain"]) {
      for (const echo of echoes) {
        const server = await httpServer((request, response) => {
          response.writeHead(200, { "content-type": contentType, "set-cookie": "CANARY-COOKIE-2" });
          response.end(echo(request));
        });
        for (const error of await failAt(server.url)) expectClean(error);
      }
    }
  });

  it("by an error inside the stream, by garbage in it, by a cut", async () => {
    const payloads = [
      JSON.stringify({ error: { message: `${secretWords} ${key}`, type: "server_error" } }),
      JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: `${secretWords} ${key}` } }),
      JSON.stringify({
        type: "response.failed",
        response: { error: { code: "server_error", message: `${secretWords} ${key}` } },
      }),
      `{"choices": "${secretWords}"}`,
    ];
    for (const payload of payloads) {
      for (const before of ["", eventOf(chatChunk({ content: "Par" }), "openai")]) {
        const server = await httpServer((_request, response) => {
          startStream(response);
          response.end(`${before}data: ${payload}\n\n`);
        });
        for (const error of await failAt(server.url)) expectClean(error);
      }
    }
  });

  it("by silence, a reset, a redirect and a wrong protocol", async () => {
    const silent = await socketServer(() => {});
    const broken = await socketServer((socket) => socket.resetAndDestroy());
    const talking = await socketServer((socket) => socket.end(`${key}\r\n`));
    const moved = await httpServer(
      (_request, response) => void response.writeHead(307, { location: `http://other.invalid/${key}` }).end(),
    );
    for (const { url } of [silent, broken, talking, moved]) for (const error of await failAt(url)) expectClean(error);
  });

  it("by a custom model that throws an AI SDK error or an error of its own", async () => {
    const apiError = Object.assign(new Error(secretWords), {
      name: "AI_APICallError",
      statusCode: 400,
      url: `https://user:${key}@example.com/`,
      requestBodyValues: { messages: [{ content: secretWords }, { content: shortSecret }] },
      responseHeaders: { "set-cookie": "CANARY-COOKIE-2" },
      responseBody: JSON.stringify({ error: { message: `${secretWords}: ${shortSecret} Bearer ${key}` } }),
    });
    const model = customModel({
      specificationVersion: "v3",
      provider: "mine",
      modelId: "m",
      supportedUrls: {},
      doGenerate: () => Promise.reject(apiError),
      doStream: () => Promise.reject(apiError),
    });
    const error: unknown = await streamParts(model.languageModel, { prompt }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "MODEL_BAD_REQUEST" });
    expectClean(error);
    // The same error, given as it is: the request that it carries tells what must not be repeated.
    const { message } = describeModelError(apiError);
    for (const canary of canaries) expect(message).not.toContain(canary);
  });

  it("by a choice that cannot be made", async () => {
    const choices = [
      resolveModel("openai/m", { host: systemHost, env: { OPENAI_API_KEY: `${key} with\nmore` } }),
      resolveModel("openai/m", {
        host: systemHost,
        env: { OPENAI_API_KEY: "key-1", OPENAI_BASE_URL: `http://user:${key}@127.0.0.1/v1` },
      }),
      resolveModel("openai/m", {
        host: systemHost,
        env: { OPENAI_API_KEY: "key-1", OPENAI_BASE_URL: `http://127.0.0.1/v1?api_key=${key}` },
      }),
      resolveModel("openai/m", {
        host: systemHost,
        env: { OPENAI_API_KEY: "key-1", OPENAI_BASE_URL: `ftp://x:${key}@127.0.0.1` },
      }),
    ];
    for (const choice of choices) expectClean(await choice.catch((error: unknown) => error));
    await expect(choices[0]).rejects.toMatchObject({ code: "MODEL_KEY_INVALID" });
  });
});

it("control: without the masking the same errors do carry them", async () => {
  const server = await httpServer((request, response) => {
    response.writeHead(400, { "content-type": "application/json" });
    response.end(echoes[1]!(request));
  });
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const bare = createOpenAICompatible({ name: "bare", baseURL: server.url, apiKey: key }).chatModel("m");
  const error: unknown = await streamParts(bare, { prompt }).catch((reason: unknown) => reason);
  expect(inspect(error, { depth: 20 })).toContain("CANARY-PROMPT-4711");
});

describe("what is quoted", () => {
  it("keeps the words that help", () => {
    const words =
      "registry.ollama.ai/library/gemma:2b does not support tools; see 'max_tokens' at https://example.com/docs#limits";
    expect(quotable(words, [key], [secretWords, system])).toBe(words);
  });

  it("is one line of at most 200 characters and a dot", () => {
    const line = quotable(`a\r\nb\u0000c ${"long ".repeat(100)}`, [], []);
    expect(line).toMatch(/^a b c long /);
    expect(line).toHaveLength(201);
  });

  it("holds no run of 16 letters of the prompt and no known secret, however they are quoted", () => {
    const letters = (text: string): string => text.replace(/[^\p{L}\p{N}]/gu, "");
    const forms = [
      (text: string) => text,
      (text: string) => JSON.stringify(text),
      (text: string) => text.replaceAll(" ", "\n"),
      (text: string) => text.split("").join(" "),
    ];
    const word = fc.stringMatching(/^[a-zA-Zäß世]{1,12}$/);
    const sentence = fc.array(word, { minLength: 4, maxLength: 12 }).map((words) => words.join(" "));
    let masked = 0;
    fc.assert(
      fc.property(sentence, sentence, fc.constantFrom(...forms), fc.boolean(), (prompted, other, form, isFirst) => {
        const echo = form(prompted);
        const line = quotable(isFirst ? `${echo} ${other} ${key}` : `${key} ${other} ${echo}`, [key], [prompted]);
        if (line.includes("[…]")) masked += 1;
        expect(line).not.toContain(key);
        for (const piece of line.split("[…]").map(letters)) {
          for (let start = 0; start + 16 <= piece.length; start++) {
            expect(letters(prompted)).not.toContain(piece.slice(start, start + 16));
          }
        }
      }),
    );
    expect(masked).toBeGreaterThan(50);
  });

  it("masks lines of the conversation that come back with escapes", () => {
    const text = "pin\n1234\ncolour\nblue sky";
    expect(quotable(`bad content ${JSON.stringify(text)} at index 3`, [], [text])).toBe('bad content "[…]" at index 3');
  });

  it("is left out when looking for echoes would take long: five million characters of prompt cost nothing", () => {
    const words = "This model cannot work with so much text.";
    expect(quotable(words, [key], ["All work and no play. ".repeat(20_000)])).toBe(words);
    expect(quotable(words, [key], ["All work and no play. ".repeat(250_000)])).toBe("");
  });
});
