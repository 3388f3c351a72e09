import type { Refusal } from "../refusal.ts";
import type { AnswerPiece } from "./answer-reader.ts";

/** One event of a stream: what it carries, or the word that ends streams of completions. */
export type AnswerEvent = object | "[DONE]";

/** Writes one answer in one of the API's two forms, as the events of a stream or as one object. */
export interface AnswerWriter {
  /** Whether anything was said: an answer that breaks off after that is told as far as it came. */
  readonly hasText: boolean;
  begin(): readonly AnswerEvent[];
  take(piece: AnswerPiece): readonly AnswerEvent[];
  /** What ends the stream, once the last piece was taken. */
  end(): readonly AnswerEvent[];
  /** What ends the stream of an answer that broke off here. */
  fail(refusal: Refusal): readonly AnswerEvent[];
  /** All of it in one, once the last piece was taken. */
  whole(): object;
}
