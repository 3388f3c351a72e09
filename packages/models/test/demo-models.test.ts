import type { LanguageModelV3Prompt, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { resolveModel } from "@turnkeeper/models";
import { describe, expect, it } from "vitest";
import { answerOf, opened, partsOf, prompt } from "./model-answer.ts";

const tools = [{ type: "function", name: "shell", inputSchema: {} } as const];
const runLs: LanguageModelV3Prompt = [{ role: "user", content: [{ type: "text", text: "run ls" }] }];

describe("a demo model", () => {
  it.each(["tools", "echo", "slow", "silent"])(
    "demo/%s says what it is before anything else, and needs no key",
    async (name) => {
      const { note, silenceMs } = await opened(`demo/${name}`);
      expect(note).toContain(`demo/${name} is the built-in demo model: it works offline, needs no key and `);
      expect(note).toContain("For a real model choose openai/…, anthropic/… or openai-compatible/….");
      expect(silenceMs).toBeUndefined();
    },
  );

  it.each(["tools", "echo"])("demo/%s says so in its answer too", async (name) => {
    const { stream } = await (await opened(`demo/${name}`)).languageModel.doStream({ prompt });
    expect(answerOf(await partsOf(stream)).text).toMatch(
      new RegExp(`\\n\\n-- demo/${name}, the built-in demo model: a few rules, no language model\\.$`),
    );
  });

  it("streams as a provider does: small deltas, a call in fragments, usage, a reason", async () => {
    const { languageModel } = await opened("demo/tools");
    const { stream } = await languageModel.doStream({ prompt: runLs, tools });
    const parts = await partsOf(stream);
    expect(parts.map(({ type }) => type)).toEqual([
      "stream-start",
      "text-start",
      "text-delta",
      "text-delta",
      "text-delta",
      "text-end",
      "tool-input-start",
      "tool-input-delta",
      "tool-input-delta",
      "tool-input-end",
      "tool-call",
      "finish",
    ]);
    expect(answerOf(parts)).toMatchObject({
      text: "I run it.",
      inputDeltas: '{"command":"ls"}',
      finish: "tool-calls",
      inputTokens: Math.ceil(JSON.stringify(runLs).length / 4),
    });
  });

  it("gives every call an id of its own", async () => {
    const { languageModel } = await opened("demo/tools");
    const ids = new Set<string>();
    for (let count = 0; count < 3; count++) {
      const { stream } = await languageModel.doStream({ prompt: runLs, tools });
      for (const part of await partsOf(stream)) if (part.type === "tool-call") ids.add(part.toolCallId);
    }
    expect(ids.size).toBe(3);
  });

  it("answers without a stream too", async () => {
    const { languageModel } = await opened("demo/tools");
    await expect(languageModel.doGenerate({ prompt: runLs, tools })).resolves.toMatchObject({
      content: [
        { type: "text", text: "I run it." },
        { type: "tool-call", toolName: "shell" },
      ],
      finishReason: { unified: "tool-calls" },
    });
  });

  it("is closed as any other", async () => {
    const model = await opened("demo/echo");
    await model.close();
    await expect(model.languageModel.doStream({ prompt })).rejects.toMatchObject({ code: "MODEL_CLOSED" });
  });
});

it("demo/echo repeats what it is told, tools or not", async () => {
  const { stream } = await (await opened("demo/echo")).languageModel.doStream({ prompt: runLs, tools });
  const answer = answerOf(await partsOf(stream));
  expect(answer.text).toMatch(/^You said: run ls\n/);
  expect(answer.calls).toEqual([]);
});

describe("demo/slow", () => {
  it("says four words a second and stops at once when it is stopped, leaving no timer", async () => {
    const host = virtualHost();
    const model = await resolveModel("demo/slow", { host });
    const controller = new AbortController();
    const { stream } = await model.languageModel.doStream({ prompt, abortSignal: controller.signal });
    const parts: LanguageModelV3StreamPart[] = [];
    const reading = (async () => {
      for await (const part of stream) parts.push(part);
    })();
    const failed = reading.catch((error: unknown) => error);
    await host.advance(2000);
    expect(parts.filter(({ type }) => type === "text-delta")).toHaveLength(8);
    controller.abort();
    expect(await failed).toMatchObject({ code: "MODEL_ABORTED" });
    expect(host.pendingTimerCount()).toBe(0);
  });

  it("leaves no timer when its reader goes away", async () => {
    const host = virtualHost();
    const model = await resolveModel("demo/slow", { host });
    const { stream } = await model.languageModel.doStream({ prompt });
    const reader = stream.getReader();
    const next = (async () => {
      while (!(await reader.read()).done);
    })();
    await host.advance(300);
    await reader.cancel();
    await next;
    expect(host.pendingTimerCount()).toBe(0);
  });
});

describe("demo/silent", () => {
  it("never answers and ends only by a stop", async () => {
    const host = virtualHost();
    const model = await resolveModel("demo/silent", { host });
    const controller = new AbortController();
    const { stream } = await model.languageModel.doStream({ prompt, abortSignal: controller.signal });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const part of stream) seen.push(part.type);
    })();
    const failed = reading.catch((error: unknown) => error);
    await host.advance(24 * 3_600_000);
    expect(seen).toEqual(["stream-start"]);
    controller.abort();
    expect(await failed).toMatchObject({ code: "MODEL_ABORTED" });
    const second = new AbortController();
    const generating = model.languageModel.doGenerate({ prompt, abortSignal: second.signal });
    second.abort();
    await expect(generating).rejects.toMatchObject({ code: "MODEL_ABORTED" });
  });
});
