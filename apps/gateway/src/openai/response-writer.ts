import type { TurnFinished } from "@turnkeeper/agent-core";
import type { Usage } from "@turnkeeper/state-store";
import type { AnswerPiece, HandedCall } from "./answer-reader.ts";
import { errorOf, refusalOfTurn } from "./openai-error.ts";
import type { OpenAiError } from "./openai-error.ts";

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

/** Makes one response of an answer's pieces: the events that tell it, and the object that it comes to. */
export class ResponseWriter {
  readonly #head: ResponseHead;
  readonly #output: object[] = [];
  #text: string | undefined;
  #sequence = 0;

  constructor(head: ResponseHead) {
    this.#head = head;
  }

  /** Whether anything was said. */
  get hasText(): boolean {
    return this.#text !== undefined;
  }

  begin(): readonly ResponseEvent[] {
    const response = this.#response({ status: "in_progress" });
    return [this.#event("response.created", { response }), this.#event("response.in_progress", { response })];
  }

  /** What a piece is told as; the last one too, but for the response's end. */
  take(piece: AnswerPiece): readonly ResponseEvent[] {
    if (piece.kind === "text") return this.#addText(piece.text);
    if (piece.kind === "calls") return [...this.#endText(), ...piece.calls.flatMap((call) => this.#addCall(call))];
    return piece.kind === "end" ? this.#endText() : [];
  }

  /** The whole response, once its last piece was taken. */
  end(last: AnswerPiece | undefined, usage: Usage, isKept: boolean): { readonly type: string } & object {
    const facts = last?.kind === "end" ? this.#endFacts(last.finished, isKept) : { status: "completed" };
    return { type: `response.${facts.status}`, ...this.#response({ ...facts, usage: usageOf(usage) }) };
  }

  /** The event that ends a stream. */
  ended(response: ReturnType<ResponseWriter["end"]>): ResponseEvent {
    const { type, ...rest } = response;
    return this.#event(type, { response: rest });
  }

  /** The event that ends a stream whose answer broke off here. */
  failed({ code, message }: Pick<OpenAiError, "code" | "message">): ResponseEvent {
    return this.#event("response.failed", { response: this.#response({ status: "failed", error: { code, message } }) });
  }

  #endFacts(finished: TurnFinished, isKept: boolean): { readonly status: string; readonly [field: string]: unknown } {
    if (finished.outcome !== "answered") {
      const { code, message } = errorOf(refusalOfTurn(finished, isKept));
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

  #response(facts: { readonly status: string; readonly [field: string]: unknown }): object {
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
