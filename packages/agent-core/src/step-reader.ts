import type { LanguageModelV3FinishReason, LanguageModelV3StreamPart, LanguageModelV3Usage } from "@ai-sdk/provider";
import type { AssistantPart, JsonValue, ProviderFields, ToolCallPart, Usage } from "@turnkeeper/state-store";
import { TextPieces } from "./text-pieces.ts";

/** A tool call as the model sent it: its arguments are still text, and may be no JSON at all. */
export interface RawToolCall {
  readonly callId: string;
  readonly name: string;
  readonly inputText: string;
}

/** What a stream part means to the turn, beyond what the reader keeps of it. */
export type StepEvent =
  | { readonly kind: "text"; readonly delta: string }
  | { readonly kind: "reasoning"; readonly delta: string }
  | { readonly kind: "arguments" }
  | { readonly kind: "call"; readonly call: RawToolCall }
  | { readonly kind: "error"; readonly error: unknown };

interface Growing {
  readonly type: "text" | "reasoning";
  readonly pieces: TextPieces;
  provider?: ProviderFields | undefined;
}

interface ReadCall {
  readonly type: "call";
  readonly call: RawToolCall;
  readonly provider?: ProviderFields | undefined;
}

function usageOf(usage: LanguageModelV3Usage): Usage {
  const { total, cacheRead } = usage.inputTokens;
  const { total: outputTotal, reasoning } = usage.outputTokens;
  return {
    ...(total === undefined ? {} : { inputTokens: total }),
    ...(cacheRead === undefined ? {} : { cachedInputTokens: cacheRead }),
    ...(outputTotal === undefined ? {} : { outputTokens: outputTotal }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
  };
}

/** Sums two counts of tokens; one that neither side gave stays absent. */
export function addUsage(left: Usage, right: Usage): Usage {
  const keys = ["inputTokens", "cachedInputTokens", "outputTokens", "reasoningTokens"] as const;
  const sums = keys.flatMap((key) =>
    left[key] === undefined && right[key] === undefined ? [] : [[key, (left[key] ?? 0) + (right[key] ?? 0)] as const],
  );
  return Object.fromEntries(sums) as Usage;
}

/**
 * Reads one model step part by part and can be asked at any moment for what has come so far, so that a step that is
 * cut or stopped leaves its partial answer behind. One reader for each step.
 */
export class StepReader {
  readonly #parts: (Growing | ReadCall)[] = [];
  readonly #growing = new Map<string, Growing>();
  usage: Usage | undefined;
  finishReason: LanguageModelV3FinishReason["unified"] | undefined;

  /** Whether anything came that the user has seen or that a repeated call would repeat. */
  get hasOutput(): boolean {
    return this.#parts.some((part) => part.type === "call" || !part.pieces.isEmpty);
  }

  get calls(): readonly RawToolCall[] {
    return this.#parts.flatMap((part) => (part.type === "call" ? [part.call] : []));
  }

  text(): string {
    return this.#parts.map((part) => (part.type === "text" ? part.pieces.join() : "")).join("");
  }

  /** Takes one part in; answers what it means to the turn, if anything. */
  read(part: LanguageModelV3StreamPart): StepEvent | undefined {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        return this.#grow("text", part);
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.#grow("reasoning", part);
      case "tool-input-delta":
        return part.delta.length > 0 ? { kind: "arguments" } : undefined;
      case "tool-call": {
        // A call the provider runs itself comes with its result in the answer: nothing of it is ours to run or to pair.
        if (part.providerExecuted) return { kind: "arguments" };
        const call = { callId: part.toolCallId, name: part.toolName, inputText: part.input };
        this.#parts.push({ type: "call", call, provider: part.providerMetadata as ProviderFields | undefined });
        return { kind: "call", call };
      }
      case "finish":
        this.usage = usageOf(part.usage);
        this.finishReason = part.finishReason.unified;
        return undefined;
      case "error":
        return { kind: "error", error: part.error };
      default:
        return undefined;
    }
  }

  #grow(
    type: "text" | "reasoning",
    part: { readonly type: string; readonly id: string; readonly delta?: string; readonly providerMetadata?: unknown },
  ): StepEvent | undefined {
    const key = `${type}/${part.id}`;
    let growing = this.#growing.get(key);
    if (!growing) {
      growing = { type, pieces: new TextPieces() };
      this.#growing.set(key, growing);
      this.#parts.push(growing);
    }
    // Signatures come with the last part of a block; the latest one counts.
    if (part.providerMetadata !== undefined) growing.provider = part.providerMetadata as ProviderFields;
    if (part.type.endsWith("-end")) this.#growing.delete(key);
    if (part.delta === undefined || part.delta.length === 0) return undefined;
    growing.pieces.add(part.delta);
    return { kind: type, delta: part.delta };
  }

  /**
   * The step as the transcript keeps it. `callPart` gives a call its stored form, or nothing where the call is not to
   * be kept (a step that was cut). Empty text is left out: providers refuse it; empty reasoning may carry a signature.
   */
  parts(
    callPart: (
      call: RawToolCall,
    ) => { readonly callId: string; readonly name: string; readonly input: JsonValue } | undefined,
  ): AssistantPart[] {
    return this.#parts.flatMap((part): AssistantPart[] => {
      const provider = part.provider === undefined ? {} : { provider: part.provider };
      if (part.type === "call") {
        const stored = callPart(part.call);
        return stored ? [{ type: "tool-call", ...stored, ...provider } satisfies ToolCallPart] : [];
      }
      const text = part.pieces.join();
      return text.length > 0 || (part.type === "reasoning" && part.provider !== undefined)
        ? [{ type: part.type, text, ...provider }]
        : [];
    });
  }
}
