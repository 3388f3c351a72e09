import type { LanguageModelV3, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { ResolvedModel } from "@turnkeeper/models";

/** So many pieces of an answer, one in each turn of the event loop: as fast as they can come one by one. */
export function pacedModel(pieceCount: number): ResolvedModel {
  const languageModel: LanguageModelV3 = {
    specificationVersion: "v3",
    provider: "bench",
    modelId: "paced",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("This model streams only.")),
    doStream: async () => {
      let sentCount = 0;
      const pull = async (controller: ReadableStreamDefaultController<LanguageModelV3StreamPart>): Promise<void> => {
        if (sentCount === 0) controller.enqueue({ type: "text-start", id: "t" });
        if (sentCount++ < pieceCount) {
          await new Promise((resolve) => setImmediate(resolve));
          controller.enqueue({ type: "text-delta", id: "t", delta: `word ${sentCount} ` });
          return;
        }
        const usage = {
          inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
          outputTokens: { total: pieceCount, text: pieceCount, reasoning: undefined },
        };
        controller.enqueue({ type: "text-end", id: "t" });
        controller.enqueue({ type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } });
        controller.close();
      };
      return { stream: new ReadableStream<LanguageModelV3StreamPart>({ pull }, { highWaterMark: 0 }) };
    },
  };
  const close = async (): Promise<void> => {};
  return { id: "bench/paced", languageModel, close, [Symbol.asyncDispose]: close };
}
