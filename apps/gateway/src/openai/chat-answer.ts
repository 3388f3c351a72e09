import type { TurnFinished } from "@turnkeeper/agent-core";
import type { Usage } from "@turnkeeper/state-store";
import type { AnswerPiece, HandedCall } from "./answer-reader.ts";
import type { OpenAnswer } from "./open-answer.ts";

type FinishReason = "stop" | "length" | "content_filter" | "tool_calls";

/** What every part of one completion has. */
export interface CompletionHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

const wholeReasons: Readonly<Record<string, FinishReason>> = {
  "output-limit": "length",
  "content-filter": "content_filter",
};

/** Why an answer ended; one whose turn was cut is not whole, which `length` is this API's word for. */
export function finishReasonOf({ outcome, reason }: TurnFinished): FinishReason {
  return outcome === "answered" ? (wholeReasons[reason ?? ""] ?? "stop") : "length";
}

/** What this API has no word for. */
export function extensionOf(answer: OpenAnswer, last: AnswerPiece | undefined): object {
  const finished = last?.kind === "end" ? last.finished : undefined;
  const isPartial = finished !== undefined && (finished.outcome !== "answered" || finished.reason !== undefined);
  return {
    turnkeeper: {
      ...(answer.isKept ? { session_id: answer.sessionId } : {}),
      partial: isPartial,
      ...(isPartial ? { outcome: finished.outcome, reason: finished.reason, detail: finished.detail } : {}),
    },
  };
}

export function usageOf({ inputTokens = 0, outputTokens = 0, cachedInputTokens, reasoningTokens }: Usage): object {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    ...(cachedInputTokens === undefined ? {} : { prompt_tokens_details: { cached_tokens: cachedInputTokens } }),
    ...(reasoningTokens === undefined ? {} : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}

export const toolCallsOf = (calls: readonly HandedCall[]): readonly object[] =>
  calls.map(({ callId, name, input }) => ({
    id: callId,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));

export interface WholeAnswer {
  readonly text: string;
  readonly reasoning: string;
  readonly last: AnswerPiece | undefined;
}

export function completionOf(head: CompletionHead, answer: OpenAnswer, { text, reasoning, last }: WholeAnswer): object {
  const calls = last?.kind === "calls" ? last.calls : [];
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: toolCallsOf(calls) }),
  };
  const finish_reason = last?.kind === "end" ? finishReasonOf(last.finished) : "tool_calls";
  return {
    ...head,
    object: "chat.completion",
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    usage: usageOf(answer.usage),
    ...extensionOf(answer, last),
  };
}

/** One chunk of a streamed completion. */
export function chunkOf(head: CompletionHead, delta: object, finish_reason: FinishReason | null = null): object {
  return { ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, logprobs: null, finish_reason }] };
}

/** What a piece adds to the message; nothing where it adds nothing. */
export function deltaOf(piece: AnswerPiece): object | undefined {
  if (piece.kind === "text") return { content: piece.text };
  if (piece.kind === "reasoning") return { reasoning_content: piece.text };
  if (piece.kind === "calls")
    return { tool_calls: toolCallsOf(piece.calls).map((call, index) => ({ index, ...call })) };
  return undefined;
}
