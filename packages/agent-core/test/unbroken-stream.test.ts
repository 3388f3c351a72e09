/** A stream that has always something to give: nothing of it must keep the process from hearing anything else. */
import { getEventListeners } from "node:events";
import type { LanguageModelV3, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { systemHost } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import { createMemoryStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { createAgent } from "../src/index.ts";

/** A model that has its next part at hand whenever it is asked; `onPart` is told how many there were. */
function unbroken(partCount: number, onPart: (count: number, signal: AbortSignal | undefined) => void): ResolvedModel {
  const languageModel: LanguageModelV3 = {
    specificationVersion: "v3",
    provider: "unbroken",
    modelId: "model",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("It streams only.")),
    doStream: ({ abortSignal }) => {
      let count = 0;
      const pull = (controller: ReadableStreamDefaultController<LanguageModelV3StreamPart>): void => {
        if (count === 0) controller.enqueue({ type: "text-start", id: "t" });
        controller.enqueue({ type: "text-delta", id: "t", delta: "x" });
        onPart(++count, abortSignal);
        if (count === partCount) controller.close();
      };
      return Promise.resolve({ stream: new ReadableStream({ pull }) });
    },
  };
  const close = async (): Promise<void> => {};
  return { id: "unbroken/model", languageModel, close, [Symbol.asyncDispose]: close };
}

it("a model that never pauses leaves the process its timers, and its stop", async () => {
  // A bound, so that a loop which hears nothing ends some day.
  const partsMax = 20_000;
  let heardAt = 0;
  let count = 0;
  const model = unbroken(partsMax, (now) => (count = now));
  await using agent = await createAgent({ store: createMemoryStore({ host: systemHost }), model, host: systemHost });
  const turn = agent.run("s", "go");
  const cancel = systemHost.timers.after(1, () => {
    heardAt = count;
    turn.stop({ by: "a timer" });
  });
  expect(await turn.result).toMatchObject({ outcome: "interrupted", reason: "user-stop", by: "a timer" });
  cancel();
  expect(heardAt).toBeLessThan(partsMax);
  expect(count).toBeLessThan(partsMax);
});

it("a stream of ten thousand parts has as many listeners on its signal as one of ten, and leaves none", async () => {
  const counts = new Map<number, number>();
  let signal: AbortSignal | undefined;
  const model = unbroken(10_000, (count, given) => {
    signal = given;
    if (given && (count === 10 || count === 9999)) counts.set(count, getEventListeners(given, "abort").length);
  });
  await using agent = await createAgent({ store: createMemoryStore({ host: systemHost }), model, host: systemHost });
  expect(await agent.run("s", "go").result).toMatchObject({ outcome: "answered" });
  expect(counts.get(9999)).toBe(counts.get(10));
  expect(counts.get(10)).toBeGreaterThan(0);
  expect(signal && getEventListeners(signal, "abort")).toEqual([]);
});
