import type { LanguageModelV3, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { ResolvedModel } from "@turnkeeper/models";

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

/** The answer of a model in ten pieces. */
const parts: readonly LanguageModelV3StreamPart[] = [
  { type: "stream-start", warnings: [] },
  { type: "text-start", id: "t" },
  ...Array.from({ length: 10 }, (): LanguageModelV3StreamPart => ({
    type: "text-delta",
    id: "t",
    delta: "All well. ",
  })),
  { type: "text-end", id: "t" },
  { type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } },
];

/** A model that answers at once and always the same: what is left is what a turn itself costs. */
export function instantModel(): ResolvedModel {
  const languageModel: LanguageModelV3 = {
    specificationVersion: "v3",
    provider: "bench",
    modelId: "instant",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("This model streams only.")),
    doStream: async () => ({
      stream: new ReadableStream<LanguageModelV3StreamPart>({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
          controller.close();
        },
      }),
    }),
  };
  const close = async (): Promise<void> => {};
  return { id: "bench/instant", languageModel, close, [Symbol.asyncDispose]: close };
}
