import type { Host } from "@turnkeeper/kernel";
import type { AnswerPiece } from "./answer-reader.ts";
import type { WholeAnswer } from "./chat-answer.ts";
import type { OpenAnswer } from "./open-answer.ts";
import { refusalOfTurn } from "./openai-error.ts";

/** So long a stream's head waits for the first word, so that a turn that fails at once is told with a status. */
const headMs = 5000;

/** A turn that came to nothing is a refusal; one that was cut after it had said something is told as it is. */
export function checkEnd(piece: AnswerPiece, hasText: boolean, isKept: boolean): void {
  if (piece.kind !== "end" || piece.finished.outcome === "answered" || hasText) return;
  throw refusalOfTurn(piece.finished, isKept);
}

/** Reads an answer to its end, or to the calls that its client runs. Throws the `Refusal` of one that came to nothing. */
export async function wholeAnswer(answer: OpenAnswer): Promise<WholeAnswer> {
  let text = "";
  let reasoning = "";
  let last: AnswerPiece | undefined;
  for await (const piece of answer.pieces()) {
    checkEnd(piece, text !== "", answer.isKept);
    if (piece.kind === "text") text += piece.text;
    else if (piece.kind === "reasoning") reasoning += piece.text;
    last = piece;
  }
  return { text, reasoning, last };
}

const isSilent = ({ kind }: AnswerPiece): boolean => kind === "waiting" || kind === "begun";

/**
 * Waits for the first piece that is to be told, at most for a while; then the stream is opened, and its heartbeats keep
 * the connection. Throws the `Refusal` of an answer that has come to nothing by then.
 */
export async function begunStream(host: Host, answer: OpenAnswer): Promise<AsyncIterable<AnswerPiece>> {
  const pieces = answer.pieces();
  const readFirst = async (): Promise<IteratorResult<AnswerPiece, void>> => {
    for (;;) {
      const next = await pieces.next();
      if (next.done || !isSilent(next.value)) return next;
    }
  };
  const first = readFirst();
  let cancel = (): void => {};
  const patience = new Promise<undefined>((resolve) => {
    cancel = host.timers.after(headMs, () => resolve(undefined));
  });
  try {
    const known = await Promise.race([first, patience]);
    if (known && !known.done) checkEnd(known.value, false, answer.isKept);
  } finally {
    cancel();
  }
  return restOf(first, pieces);
}

async function* restOf(
  first: Promise<IteratorResult<AnswerPiece, void>>,
  pieces: AsyncGenerator<AnswerPiece, void, undefined>,
): AsyncGenerator<AnswerPiece, void, undefined> {
  const begun = await first;
  if (begun.done) return;
  yield begun.value;
  yield* pieces;
}
