import { costOf } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";
import { traitsOf } from "../src/model-traits.ts";
import type { ModelTraits } from "../src/model-traits.ts";
import { opened } from "./model-answer.ts";

const official = "https://api.openai.com/v1";
const known = (name: string, baseUrl: string, own?: ModelTraits): ModelTraits => {
  const [provider = "", ...rest] = name.split("/");
  return traitsOf({ provider: provider as "openai", modelId: rest.join("/") }, baseUrl, own);
};

describe("what is known of a model", () => {
  it.each([
    ["openai/gpt-5-mini", official, 400_000],
    ["openai/gpt-5-chat-latest", official, 128_000],
    ["openai/gpt-4.1-nano", official, 1_047_576],
    ["openai/gpt-4o-mini", official, 128_000],
    ["openai/o3", official, 200_000],
    ["openai/o4-mini", official, 200_000],
    ["openai/omni", official, undefined],
    ["anthropic/claude-x", "https://api.anthropic.com/v1", 200_000],
    // What somebody else serves under a known name has the window that somebody else gave it.
    ["openai/gpt-5-mini", "http://127.0.0.1:8000/v1", undefined],
    ["openai-compatible/claude-x", "https://api.anthropic.com.example/v1", undefined],
  ])("tells the window of %s at %s", (name, baseUrl, tokens) => {
    expect(known(name, baseUrl).contextWindowTokens).toBe(tokens);
  });

  it.each([
    ["openai/gpt-5-mini", official, "key"],
    ["openai/m", "https://eu.api.openai.com/v1", "key"],
    ["openai/m", "https://me.openai.azure.com/openai/v1", "key"],
    ["openai-compatible/grok-x", "https://api.x.ai/v1", "conversation-header"],
    ["anthropic/claude-x", "https://models.example/anthropic", "breakpoints"],
    ["openai-compatible/m", "http://127.0.0.1:11434/v1", undefined],
    ["openai-compatible/m", "https://api.openai.com.example/v1", undefined],
  ])("tells how %s at %s finds its cache", (name, baseUrl, cache) => {
    expect(known(name, baseUrl).cache).toBe(cache);
  });

  it("gives way, field by field, to what the user says", () => {
    const own = { contextWindowTokens: 32_000 };
    expect(known("openai/gpt-5-mini", official, own)).toMatchObject({ contextWindowTokens: 32_000, cache: "key" });
    expect(known("openai/gpt-5-mini", official, { cache: "none" })).toMatchObject({ contextWindowTokens: 400_000 });
  });

  it("stands on the resolved model, and a model's own window before its provider's", async () => {
    const providers = { "openai-compatible": { baseUrl: "http://127.0.0.1:1111/v1", contextWindowTokens: 8000 } };
    const price = { inputPerMillion: 1, outputPerMillion: 2 };
    const models = { "openai-compatible/a": { contextWindowTokens: 32_000, price } };
    const one = await opened("openai-compatible/a", { providers, models });
    expect(one).toMatchObject({ contextWindowTokens: 32_000, price });
    const other = await opened("openai-compatible/b", { providers, models });
    expect(other.contextWindowTokens).toBe(8000);
    expect(other.price).toBeUndefined();
  });

  it.each([
    [
      { contextWindowTokens: 0 },
      "models.openai/m.contextWindowTokens: expected a whole number of tokens above 0, got 0",
    ],
    [{ takesTools: "no" }, 'models.openai/m.takesTools: expected true or false, got "no"'],
    [{ price: { inputPerMillion: -1 } }, "models.openai/m.price: expected prices"],
    [{ outputLimitField: "max" }, "models.openai/m.outputLimitField: expected max_tokens or max_completion_tokens"],
    [{ cash: 1 }, "models.openai/m.cash: expected one of contextWindowTokens"],
  ])("refuses %j by its name", async (traits, told) => {
    const models = { "openai/m": traits as ModelTraits };
    await expect(opened("demo/echo", { models })).rejects.toThrow(told);
  });
});

describe("a cost", () => {
  const price = { inputPerMillion: 3, outputPerMillion: 15 };

  it("counts cached, written and plain input by their own prices, and output with its reasoning", () => {
    const own = { ...price, cachedInputPerMillion: 0.3, cacheWritePerMillion: 3.75 };
    const usage = { inputTokens: 1000, cachedInputTokens: 600, cacheWriteTokens: 300, outputTokens: 200 };
    expect(costOf(usage, own) * 1e6).toBeCloseTo(100 * 3 + 600 * 0.3 + 300 * 3.75 + 200 * 15, 6);
  });

  it("takes the price of input where no other is given, and nothing for what was not counted", () => {
    const usage = { inputTokens: 1000, cachedInputTokens: 600, outputTokens: 0 };
    expect(costOf(usage, price) * 1e6).toBeCloseTo(3000, 6);
    expect(costOf({}, price)).toBe(0);
  });

  it("is never below what was counted, when a provider counts its cache beside the input", () => {
    expect(costOf({ inputTokens: 10, cachedInputTokens: 100 }, price) * 1e6).toBeCloseTo(300, 6);
  });
});
