import { describe, expect, it } from "vitest";
import { mayCutSilently, meantReason, tailOf } from "../src/silent-cut.ts";
import { streamServer } from "./loopback-server.ts";
import { answerOf, opened, streamParts } from "./model-answer.ts";
import { chatChunk } from "./written-streams.ts";

describe("a server that may report stop for an answer it cut", () => {
  it.each<[string, string, boolean]>([
    ["glm-4.7-flash", "http://127.0.0.1:11434/v1", true],
    ["GLM-4.7", "http://ollama.lan/v1", true],
    ["glm-4.7", "http://gpu-box:8080/ollama/v1", true],
    ["glm-4.7:cloud", "http://127.0.0.1:11434/v1", false],
    ["glm-4.7", "https://ollama.com/v1", false],
    ["glm-4.7", "https://api.ollama.com/v1", false],
    ["glm-4.7", "https://api.z.ai/api/paas/v4", false],
    ["glm-4.7", "http://127.0.0.1:8000/v1", false],
    ["qwen3", "http://127.0.0.1:11434/v1", false],
    ["glm-4.7", "no address", false],
  ])("%s at %s: %s", (modelId, baseUrl, expected) => {
    expect(mayCutSilently({ modelId, baseUrl })).toBe(expected);
  });
});

describe("an answer that ends with stop", () => {
  it.each([
    "That is all.",
    "Really?!",
    'He said "no."',
    "これで終わりです。",
    "（完）",
    "```\ncode\n```\n",
    "**done**",
    "| a | b |",
    "Great 🎉",
    "Great ❤️",
    "Bonne chance 🇫🇷 ",
    "",
    "  \n",
  ])("and has a natural end is whole: %j", (text) => {
    expect(meantReason({ unified: "stop", raw: "stop" }, tailOf(text)).unified).toBe("stop");
  });

  it.each(["and then the", "1, 2,", "the answer is:", "これは、", "x =", "half a wo"])(
    "in the middle is cut: %j",
    (text) => {
      expect(meantReason({ unified: "stop", raw: "stop" }, tailOf(text))).toEqual({ unified: "length", raw: "stop" });
      expect(meantReason({ unified: "tool-calls", raw: "stop" }, tailOf(text)).unified).toBe("tool-calls");
    },
  );

  it("is judged by its end, however it came", () => {
    const text = "A long sentence that is cut in several places and ends well.";
    let tail = "";
    for (const letter of text) tail = tailOf(tail, letter);
    expect(tail).toBe(tailOf(text));
    expect(tailOf("", text)).toBe(tail);
  });
});

describe("a stream of such a server", () => {
  const lines = (text: string): string[] => [
    chatChunk({ role: "assistant", content: "" }),
    chatChunk({ content: text.slice(0, 3) }),
    chatChunk({ content: text.slice(3) }),
    chatChunk({}, "stop"),
  ];

  it.each([
    ["glm-4.7", "ollama/v1", "It is sunny and", "length"],
    ["glm-4.7", "ollama/v1", "It is sunny.", "stop"],
    ["glm-4.7", "v1", "It is sunny and", "stop"],
    ["qwen3", "ollama/v1", "It is sunny and", "stop"],
  ])("%s at /%s that says %j ends with %s", async (modelId, path, text, finish) => {
    const server = await streamServer(lines(text), "openai");
    const model = await opened(`openai-compatible/${modelId}`, {
      providers: { "openai-compatible": { baseUrl: `${server.url}/${path}` } },
    });
    const answer = answerOf(await streamParts(model.languageModel));
    expect(answer).toMatchObject({ text, finish, raw: "stop" });
  });
});
