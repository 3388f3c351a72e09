import type { TurnFinished } from "@turnkeeper/agent-core";
import type { Usage } from "@turnkeeper/state-store";
import type { Refusal } from "../refusal.ts";
import type { AnswerPiece, HandedCall } from "./answer-reader.ts";
import type { AnswerWriter } from "./answer-writer.ts";
import type { OpenAnswer } from "./open-answer.ts";
import { errorOf, refusalOfTurn } from "./openai-error.ts";

/** What every form of one response has. */
export interface ResponseHead {
  readonly id: string;
  readonly created_at: number;
  readonly model: string;
  readonly previous_response_id: string | null;
  readonly instructions: string | null;
  readonly store: boolean;
}

interface ResponseEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** How a response stands, and what else is not always the same. */
interface ResponseFacts {
  readonly status: string;
  readonly [field: string]: unknown;
}

const incompleteReasons: Readonly<Record<string, string>> = {
  "output-limit": "max_output_tokens",
  "content-filter": "content_filter",
};

const usageOf = ({ inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, reasoningTokens = 0 }: Usage): object => ({
  input_tokens: inputTokens,
  input_tokens_details: { cached_tokens: cachedInputTokens },
  output_tokens: outputTokens,
  output_tokens_details: { reasoning_tokens: reasoningTokens },
  total_tokens: inputTokens + outputTokens,
});

/** Writes an answer as a response, or as the events that tell it. */
export class ResponseWriter implements AnswerWriter {
  readonly #head: ResponseHead;
  readonly #answer: OpenAnswer;
  readonly #output: object[] = [];
  #text: string | undefined;
  #sequence = 0;
  #last: AnswerPiece | undefined;

  constructor(head: ResponseHead, answer: OpenAnswer) {
    this.#head = head;
    this.#answer = answer;
  }

  get hasText(): boolean {
    return this.#text !== undefined;
  }

  begin(): readonly ResponseEvent[] {
    const response = this.#response({ status: "in_progress" });
    return [this.#event("response.created", { response }), this.#event("response.in_progress", { response })];
  }

  /** What a piece is told as; the last one too, but for the response's end. */
  take(piece: AnswerPiece): readonly ResponseEvent[] {
    this.#last = piece;
    if (piece.kind === "text") return this.#addText(piece.text);
    if (piece.kind === "calls") return [...this.#endText(), ...piece.calls.flatMap((call) => this.#addCall(call))];
    return piece.kind === "end" ? this.#endText() : [];
  }

  whole(): object {
    return this.#response(this.#facts);
  }

  end(): readonly ResponseEvent[] {
    const facts = this.#facts;
    return [this.#event(`response.${facts.status}`, { response: this.#response(facts) })];
  }

  fail(refusal: Refusal): readonly ResponseEvent[] {
    const { code, message } = errorOf(refusal);
    const response = this.#response({ status: "failed", error: { code, message } });
    return [this.#event("response.failed", { response })];
  }

  get #facts(): ResponseFacts {
    const facts = this.#last?.kind === "end" ? this.#endFacts(this.#last.finished) : { status: "completed" };
    return { ...facts, usage: usageOf(this.#answer.usage) };
  }

  #endFacts(finished: TurnFinished): ResponseFacts {
    if (finished.outcome !== "answered") {
      const { code, message } = errorOf(refusalOfTurn(finished, this.#answer.isKept));
      return { status: "failed", error: { code, message } };
    }
    const reason = incompleteReasons[finished.reason ?? ""];
    return reason === undefined ? { status: "completed" } : { status: "incomplete", incomplete_details: { reason } };
  }

  get #messageId(): string {
    return `msg_${this.#head.id.slice(5)}`;
  }

  #message(status: string, content: readonly object[]): object {
    return { type: "message", id: this.#messageId, status, role: "assistant", content };
  }

  #addText(text: string): readonly ResponseEvent[] {
    const place = { item_id: this.#messageId, output_index: 0, content_index: 0 };
    const head =
      this.#text === undefined
        ? [
            this.#event("response.output_item.added", { output_index: 0, item: this.#message("in_progress", []) }),
            this.#event("response.content_part.added", { ...place, part: textPart("") }),
          ]
        : [];
    this.#text = (this.#text ?? "") + text;
    return [...head, this.#event("response.output_text.delta", { ...place, delta: text, logprobs: [] })];
  }

  #endText(): readonly ResponseEvent[] {
    if (this.#text === undefined) return [];
    const place = { item_id: this.#messageId, output_index: 0, content_index: 0 };
    const part = textPart(this.#text);
    const item = this.#message("completed", [part]);
    this.#output.push(item);
    return [
      this.#event("response.output_text.done", { ...place, text: this.#text, logprobs: [] }),
      this.#event("response.content_part.done", { ...place, part }),
      this.#event("response.output_item.done", { output_index: 0, item }),
    ];
  }

  #addCall({ callId, name, input }: HandedCall): readonly ResponseEvent[] {
    const place = { item_id: `fc_${callId}`, output_index: this.#output.length };
    const { output_index } = place;
    const text = JSON.stringify(input);
    const call = { type: "function_call", id: place.item_id, call_id: callId, name };
    const item = { ...call, arguments: text, status: "completed" };
    this.#output.push(item);
    const begun = { ...call, arguments: "", status: "in_progress" };
    return [
      this.#event("response.output_item.added", { output_index, item: begun }),
      this.#event("response.function_call_arguments.delta", { ...place, delta: text }),
      this.#event("response.function_call_arguments.done", { ...place, name, arguments: text }),
      this.#event("response.output_item.done", { output_index, item }),
    ];
  }

  #event(type: string, fields: object): ResponseEvent {
    return { type, sequence_number: this.#sequence++, ...fields };
  }

  #response(facts: ResponseFacts): object {
    return {
      ...this.#head,
      object: "response",
      error: null,
      incomplete_details: null,
      metadata: {},
      output: [...this.#output],
      parallel_tool_calls: true,
      temperature: null,
      tool_choice: "auto",
      tools: [],
      top_p: null,
      usage: null,
      ...facts,
    };
  }
}

const textPart = (text: string): object => ({ type: "output_text", text, annotations: [], logprobs: [] });
