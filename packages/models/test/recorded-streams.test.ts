import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { streamServer } from "./loopback-server.ts";
import { answerOf, compatibleAt, opened, streamParts } from "./model-answer.ts";
import type { Answer } from "./model-answer.ts";

// Streams that real providers sent stand beside the repository where they may be used; the formats themselves are
// covered without them by wire-formats.test.ts.
const folder = fileURLToPath(new URL("../../../../shared/fixtures/provider-streams/", import.meta.url));
const isThere = existsSync(folder);

const weather = [{ name: "weather", input: '{"location": "San Francisco"}' }];

interface Recording {
  readonly file: string;
  readonly expected: Partial<Answer>;
  readonly beginnings?: Partial<Record<"text" | "reasoning", string>>;
  readonly endings?: Partial<Record<"text" | "reasoning", string>>;
}

const recordings: readonly Recording[] = [
  {
    file: "openai-text",
    expected: {
      textDeltaCount: 300,
      calls: [],
      reasoning: "",
      finish: "stop",
      inputTokens: 16,
      outputTokens: 300,
      reasoningTokens: 0,
    },
    beginnings: { text: "**Holiday Name:** Harmony Day\n\n**Date:** Celebrated annually on the first Saturd" },
    endings: { text: "connected through shared human experiences and mutual respect." },
  },
  {
    file: "azure-model-router.1",
    expected: {
      text: "Capital of Denmark.",
      textDeltaCount: 4,
      finish: "stop",
      inputTokens: 15,
      outputTokens: 78,
      reasoningTokens: 64,
    },
  },
  {
    file: "deepseek-reasoning",
    expected: {
      text: 'The word "strawberry" contains three "r"s.',
      calls: [],
      finish: "stop",
      inputTokens: 18,
      outputTokens: 219,
      reasoningTokens: 205,
    },
    beginnings: { reasoning: 'We need to count the number of the letter "r" in the word "s' },
    endings: { reasoning: "Thus, the answer is 3." },
  },
  {
    file: "deepseek-tool-call",
    expected: {
      text: "",
      calls: weather,
      inputDeltas: weather[0]!.input,
      finish: "tool-calls",
      inputTokens: 339,
      outputTokens: 83,
      reasoningTokens: 39,
      cachedTokens: 320,
    },
    beginnings: { reasoning: "The user is asking for the weather in San Francisco. I need " },
  },
  {
    file: "xai-tool-call",
    expected: {
      text: "",
      calls: [{ name: "weather", input: '{"location":"San Francisco"}' }],
      finish: "tool-calls",
      inputTokens: 307,
      outputTokens: 26,
      reasoningTokens: 227,
      cachedTokens: 306,
    },
    beginnings: { reasoning: "First, the user is asking about the weather in San Francisco" },
  },
  {
    file: "groq-tool-call",
    expected: { calls: [{ name: "weather", input: "{}" }], finish: "tool-calls", inputTokens: 210, outputTokens: 15 },
  },
  {
    file: "alibaba-tool-call",
    expected: {
      calls: weather,
      inputDeltas: weather[0]!.input,
      finish: "tool-calls",
      inputTokens: 295,
      outputTokens: 22,
    },
  },
  { file: "mistral-tool-call", expected: { calls: weather, finish: "tool-calls", inputTokens: 124, outputTokens: 22 } },
  {
    file: "anthropic-text",
    expected: {
      text: "Hello! I'm doing well, thank you for asking. How are you doing today? Is there anything I can help you with?",
      textDeltaCount: 6,
      finish: "stop",
      raw: "end_turn",
      inputTokens: 12,
      outputTokens: 30,
    },
  },
  {
    file: "anthropic-json-other-tool.1",
    expected: {
      calls: weather,
      inputDeltas: weather[0]!.input,
      finish: "tool-calls",
      inputTokens: 843,
      outputTokens: 28,
    },
  },
  {
    file: "anthropic-tool-no-args",
    expected: {
      text: "I'll update the issue list for you.",
      calls: [{ name: "updateIssueList", input: "{}" }],
      finish: "tool-calls",
      inputTokens: 565,
      outputTokens: 48,
    },
  },
  {
    file: "anthropic-refusal",
    expected: { text: "", calls: [], finish: "content-filter", raw: "refusal", inputTokens: 18, outputTokens: 5 },
  },
];

describe.skipIf(!isThere)(
  `recorded streams${isThere ? "" : " (skipped: no recordings beside this repository)"}`,
  () => {
    it.each(recordings)(
      "$file says through the real client what was recorded",
      async ({ file, expected, beginnings = {}, endings = {} }) => {
        const lines = readFileSync(`${folder}${file}.chunks.txt`, "utf8")
          .split("\n")
          .filter((line) => line !== "");
        const isAnthropic = file.startsWith("anthropic-");
        const server = await streamServer(lines, isAnthropic ? "anthropic" : "openai");
        const model = isAnthropic
          ? await opened("anthropic/claude-x", { env: { ANTHROPIC_API_KEY: "key-1", ANTHROPIC_BASE_URL: server.url } })
          : await compatibleAt(server.url);
        const answer = answerOf(await streamParts(model.languageModel));
        expect(answer).toMatchObject(expected);
        for (const [key, text] of Object.entries(beginnings))
          expect(answer[key as "text"].slice(0, text.length)).toBe(text);
        for (const [key, text] of Object.entries(endings)) expect(answer[key as "text"].slice(-text.length)).toBe(text);
      },
    );
  },
);
