import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { ResolvedModel } from "@turnkeeper/models";

const usage = {
  inputTokens: { total: 50_000, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

/** A call as the model sends it. */
export interface ScriptedCall {
  readonly name: string;
  readonly input: object;
}

/** The calls of one answer; none: it is words, and the last of its turn. */
export type CallsOf = (request: LanguageModelV3CallOptions) => readonly ScriptedCall[];

let callCount = 0;

function partsOf(calls: readonly ScriptedCall[]): readonly LanguageModelV3StreamPart[] {
  const raw = calls.length === 0 ? "stop" : "tool-calls";
  const words = [
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "Done." },
    { type: "text-end", id: "t" },
  ] as const;
  const asked = calls.map(({ name, input }) => {
    const toolCallId = `call-${++callCount}`;
    return { type: "tool-call", toolCallId, toolName: name, input: JSON.stringify(input) } as const;
  });
  const said = calls.length === 0 ? words : asked;
  return [
    { type: "stream-start", warnings: [] },
    ...said,
    { type: "finish", usage, finishReason: { unified: raw, raw } },
  ];
}

/** A model that answers at once, by script: what is left is what whoever asks it costs. */
export function scriptedLanguageModel(callsOf: CallsOf): LanguageModelV3 {
  return {
    specificationVersion: "v3",
    provider: "bench",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("This model streams only.")),
    doStream: async (request) => {
      const parts = partsOf(callsOf(request));
      return {
        stream: new ReadableStream<LanguageModelV3StreamPart>({
          start(controller) {
            for (const part of parts) controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
  };
}

/** Each count of its provider is far below its window: nothing is summarised. */
export function scriptedModel(callsOf: CallsOf): ResolvedModel {
  const close = async (): Promise<void> => {};
  const languageModel = scriptedLanguageModel(callsOf);
  return { id: "bench/scripted", languageModel, contextWindowTokens: 1_000_000, close, [Symbol.asyncDispose]: close };
}
