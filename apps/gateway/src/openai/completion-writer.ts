import type { Refusal } from "../refusal.ts";
import type { AnswerPiece } from "./answer-reader.ts";
import type { AnswerEvent, AnswerWriter } from "./answer-writer.ts";
import { chunkOf, completionOf, deltaOf, extensionOf, finishReasonOf, usageOf } from "./chat-answer.ts";
import type { CompletionHead } from "./chat-answer.ts";
import type { OpenAnswer } from "./open-answer.ts";
import { errorOf, refusalOfTurn } from "./openai-error.ts";

/** Writes an answer as a completion, or as its chunks. */
export class CompletionWriter implements AnswerWriter {
  readonly #head: CompletionHead;
  readonly #answer: OpenAnswer;
  readonly #includesUsage: boolean;
  #text = "";
  #reasoning = "";
  #last: AnswerPiece | undefined;
  #isBrokenOff = false;

  constructor(head: CompletionHead, answer: OpenAnswer, includesUsage: boolean) {
    this.#head = head;
    this.#answer = answer;
    this.#includesUsage = includesUsage;
  }

  get hasText(): boolean {
    return this.#text !== "";
  }

  begin(): readonly AnswerEvent[] {
    return [this.#chunk(chunkOf(this.#head, { role: "assistant", content: "" }))];
  }

  take(piece: AnswerPiece): readonly AnswerEvent[] {
    this.#last = piece;
    if (piece.kind === "text") this.#text += piece.text;
    else if (piece.kind === "reasoning") this.#reasoning += piece.text;
    const delta = deltaOf(piece);
    const chunks = delta ? [this.#chunk(chunkOf(this.#head, delta))] : [];
    if (piece.kind !== "end" && piece.kind !== "calls") return chunks;
    if (piece.kind === "end" && piece.finished.outcome !== "answered")
      return this.fail(refusalOfTurn(piece.finished, this.#answer.isKept));
    const finishReason = piece.kind === "calls" ? "tool_calls" : finishReasonOf(piece.finished);
    const last = { ...chunkOf(this.#head, {}, finishReason), ...extensionOf(this.#answer, piece) };
    return [...chunks, this.#chunk(last)];
  }

  end(): readonly AnswerEvent[] {
    if (this.#isBrokenOff) return [];
    if (!this.#includesUsage) return ["[DONE]"];
    const usage = usageOf(this.#answer.usage);
    return [{ ...this.#head, object: "chat.completion.chunk", choices: [], usage }, "[DONE]"];
  }

  /** What came is not whole: no finish reason is told, and the client throws. */
  fail(refusal: Refusal): readonly AnswerEvent[] {
    this.#isBrokenOff = true;
    return [{ error: errorOf(refusal) }];
  }

  whole(): object {
    return completionOf(this.#head, this.#answer, {
      text: this.#text,
      reasoning: this.#reasoning,
      last: this.#last,
    });
  }

  #chunk(chunk: object): object {
    return this.#includesUsage ? { usage: null, ...chunk } : chunk;
  }
}
