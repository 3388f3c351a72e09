/** A stream that has always something to give: nothing of it must keep the process from hearing anything else. */
import type { LanguageModelV3, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { createAgent } from "../src/index.ts";

const partsMax = 200_000;

it("a model that never pauses leaves the process its timers, and its stop", async () => {
  let count = 0;
  const pull = (controller: ReadableStreamDefaultController<LanguageModelV3StreamPart>): void => {
    if (count === 0) controller.enqueue({ type: "text-start", id: "t" });
    controller.enqueue({ type: "text-delta", id: "t", delta: "x" });
    // A bound, so that a loop which hears nothing ends some day.
    if (++count === partsMax) controller.close();
  };
  const languageModel: LanguageModelV3 = {
    specificationVersion: "v3",
    provider: "hot",
    modelId: "model",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("It streams only.")),
    doStream: () => Promise.resolve({ stream: new ReadableStream({ pull }) }),
  };
  const close = async (): Promise<void> => {};
  const model = { id: "hot/model", languageModel, close, [Symbol.asyncDispose]: close };
  const store = createMemoryStore({ host: systemHost });
  await using agent = await createAgent({ store, model, host: systemHost });
  const turn = agent.run("s", "go");
  const cancel = systemHost.timers.after(5, () => turn.stop({ by: "a timer" }));
  expect(await turn.result).toMatchObject({ outcome: "interrupted", reason: "user-stop", by: "a timer" });
  cancel();
  expect(count).toBeLessThan(partsMax);
});
