import type {
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3ToolCall,
  LanguageModelV3ToolResult,
  LanguageModelV3Usage,
} from "@ai-sdk/provider";
import { costOf } from "@turnkeeper/models";
import type { ModelPrice } from "@turnkeeper/models";
import type {
  AssistantPart,
  JsonValue,
  ProviderFields,
  ProviderToolPart,
  ToolCallPart,
  Usage,
} from "@turnkeeper/state-store";
import { TextPieces } from "./text-pieces.ts";
import { parseObject } from "./tool-input.ts";

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
  | { readonly kind: "provider-tool" }
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

type ReadProviderTool = { -readonly [Key in keyof ProviderToolPart]: ProviderToolPart[Key] };

function usageOf(usage: LanguageModelV3Usage, price: ModelPrice | undefined): Usage {
  const { total, cacheRead, cacheWrite } = usage.inputTokens;
  const { total: outputTotal, reasoning } = usage.outputTokens;
  const counts: Usage = {
    ...(total === undefined ? {} : { inputTokens: total }),
    ...(cacheRead === undefined ? {} : { cachedInputTokens: cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWriteTokens: cacheWrite }),
    ...(outputTotal === undefined ? {} : { outputTokens: outputTotal }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
  };
  return price === undefined ? counts : { ...counts, cost: costOf(counts, price) };
}

/** Sums two usages; a count that neither side gave stays absent. */
export function addUsage(left: Usage, right: Usage): Usage {
  const keys = [
    "inputTokens",
    "cachedInputTokens",
    "cacheWriteTokens",
    "outputTokens",
    "reasoningTokens",
    "cost",
  ] as const;
  const sums = keys.flatMap((key) =>
    left[key] === undefined && right[key] === undefined ? [] : [[key, (left[key] ?? 0) + (right[key] ?? 0)] as const],
  );
  return Object.fromEntries(sums) as Usage;
}

/**
 * Reads one model step part by part and can be asked at any moment for what has come so far, so that a step that is
 * cut or stopped leaves its partial answer behind. One reader for each stream.
 */
export class StepReader {
  readonly #parts: (Growing | ReadCall | ReadProviderTool)[] = [];
  readonly #growing = new Map<string, Growing>();
  readonly #argumentIds = new Set<string>();
  readonly #price: ModelPrice | undefined;
  usage: Usage | undefined;
  finishReason: LanguageModelV3FinishReason["unified"] | undefined;

  /** `price`: what the model's tokens cost. */
  constructor(price?: ModelPrice) {
    this.#price = price;
  }

  /** Whether anything came that the user has seen, reasoning included. */
  get hasOutput(): boolean {
    return this.#parts.some((part) => !("pieces" in part) || !part.pieces.isEmpty);
  }

  /** Whether anything came of the answer itself: words, or a call of whomever. A repeated call would say it again. */
  get hasAnswer(): boolean {
    return this.#parts.some((part) => part.type !== "reasoning" && !("pieces" in part && part.pieces.isBlank));
  }

  /** Whether a call of the provider's own is the last that came: it has not said yet what it makes of the result. */
  get endsInProviderTool(): boolean {
    return this.#parts.findLast((part) => !("pieces" in part) || !part.pieces.isBlank)?.type === "provider-tool";
  }

  /** Whether the arguments of a call have begun to come and have not ended. */
  get isInArguments(): boolean {
    return this.#argumentIds.size > 0;
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
      case "tool-input-start":
        this.#argumentIds.add(part.id);
        return undefined;
      case "tool-input-delta":
        return part.delta.length > 0 ? { kind: "arguments" } : undefined;
      case "tool-input-end":
        this.#argumentIds.delete(part.id);
        return undefined;
      case "tool-call":
        this.#argumentIds.delete(part.toolCallId);
        return part.providerExecuted ? this.#beginProviderTool(part) : this.#addCall(part);
      case "tool-result":
        return this.#endProviderTool(part);
      case "finish":
        this.usage = usageOf(part.usage, this.#price);
        this.finishReason = part.finishReason.unified;
        return undefined;
      case "error":
        return { kind: "error", error: part.error };
      default:
        return undefined;
    }
  }

  #addCall({ toolCallId, toolName, input, providerMetadata }: LanguageModelV3ToolCall): StepEvent {
    const call = { callId: toolCallId, name: toolName, inputText: input };
    this.#parts.push({ type: "call", call, provider: providerMetadata as ProviderFields | undefined });
    return { kind: "call", call };
  }

  /** A call the provider runs itself: nothing of it is ours to run or to pair, and all of it is to go back as it came. */
  #beginProviderTool({ toolCallId, toolName, input, providerMetadata }: LanguageModelV3ToolCall): StepEvent {
    const parsed = parseObject(input);
    this.#parts.push({
      type: "provider-tool",
      callId: toolCallId,
      name: toolName,
      input: "value" in parsed ? parsed.value : {},
      ...(providerMetadata === undefined ? {} : { provider: providerMetadata as ProviderFields }),
    });
    return { kind: "provider-tool" };
  }

  #endProviderTool({ toolCallId, result, isError, providerMetadata }: LanguageModelV3ToolResult): StepEvent {
    const begun = this.#parts.find((part) => part.type === "provider-tool" && part.callId === toolCallId);
    if (begun?.type === "provider-tool") {
      begun.output = result as JsonValue;
      if (isError) begun.isError = true;
      if (providerMetadata !== undefined) begun.resultProvider = providerMetadata as ProviderFields;
    }
    return { kind: "provider-tool" };
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
      if (part.type === "provider-tool") return [{ ...part }];
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
