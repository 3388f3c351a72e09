import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Prompt,
  LanguageModelV3StreamPart,
} from "@ai-sdk/provider";
import { systemHost } from "@turnkeeper/kernel";
import type { ResolveModelOptions, ResolvedModel } from "@turnkeeper/models";
import { resolveModel } from "@turnkeeper/models";
import { onTestFinished } from "vitest";

export const prompt: LanguageModelV3Prompt = [
  { role: "user", content: [{ type: "text", text: "What is the weather?" }] },
];

/** A resolved model that is closed with the test. */
export async function opened(name: string, options: Omit<ResolveModelOptions, "host"> = {}): Promise<ResolvedModel> {
  const model = await resolveModel(name, { host: systemHost, ...options });
  onTestFinished(() => model.close());
  return model;
}

/** A model of the OpenAI-compatible provider at a loopback server. */
export const compatibleAt = (
  url: string,
  options: Omit<ResolveModelOptions, "host" | "providers"> = {},
): Promise<ResolvedModel> =>
  opened("openai-compatible/some-model", { ...options, providers: { "openai-compatible": { baseUrl: `${url}/v1` } } });

export async function partsOf(stream: ReadableStream<LanguageModelV3StreamPart>): Promise<LanguageModelV3StreamPart[]> {
  const parts: LanguageModelV3StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

export async function streamParts(
  model: LanguageModelV3,
  options: Partial<LanguageModelV3CallOptions> = {},
): Promise<LanguageModelV3StreamPart[]> {
  const { stream } = await model.doStream({ prompt, ...options });
  return partsOf(stream);
}

export interface Answer {
  readonly text: string;
  readonly reasoning: string;
  readonly textDeltaCount: number;
  readonly calls: readonly { readonly name: string; readonly input: string }[];
  readonly inputDeltas: string;
  readonly finish: string;
  readonly raw: string | undefined;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly reasoningTokens: number | undefined;
  readonly cachedTokens: number | undefined;
}

/** What a stream's parts add up to. */
export function answerOf(parts: readonly LanguageModelV3StreamPart[]): Answer {
  const deltas = (type: "text-delta" | "reasoning-delta" | "tool-input-delta"): string[] =>
    parts.flatMap((part) => (part.type === type ? [part.delta] : []));
  const finish = parts.find((part) => part.type === "finish");
  return {
    text: deltas("text-delta").join(""),
    reasoning: deltas("reasoning-delta").join(""),
    textDeltaCount: deltas("text-delta").length,
    calls: parts.flatMap((part) => (part.type === "tool-call" ? [{ name: part.toolName, input: part.input }] : [])),
    inputDeltas: deltas("tool-input-delta").join(""),
    finish: finish?.finishReason.unified ?? "none",
    raw: finish?.finishReason.raw,
    inputTokens: finish?.usage.inputTokens.total,
    outputTokens: finish?.usage.outputTokens.total,
    reasoningTokens: finish?.usage.outputTokens.reasoning,
    cachedTokens: finish?.usage.inputTokens.cacheRead,
  };
}
