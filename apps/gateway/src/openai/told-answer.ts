import type { Host } from "@turnkeeper/kernel";
import type { FastifyReply } from "fastify";
import { whenClientGone } from "../client-gone.ts";
import type { EventStream, StreamPlace } from "../event-stream.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { refusalOf } from "../refusal.ts";
import type { AnswerPiece } from "./answer-reader.ts";
import type { AnswerEvent, AnswerWriter } from "./answer-writer.ts";
import type { OpenAnswer } from "./open-answer.ts";
import { refusalOfTurn } from "./openai-error.ts";

/** So long a stream's head waits for the first word, so that a turn that fails at once is told with a status. */
const headMs = 5000;

/** Tells an answer in the form of `writer`: on a stream in that place, else as one object. */
export async function tellAnswer(
  { host, streams }: Pick<GatewayParts, "host" | "streams">,
  reply: FastifyReply,
  answer: OpenAnswer,
  writer: AnswerWriter,
  place: StreamPlace | undefined,
): Promise<object> {
  whenClientGone(reply, () => answer.abandon());
  if (answer.isKept) reply.header("x-session-id", answer.sessionId);
  if (!place) return wholeAnswer(answer, writer);
  const pieces = await begunStream(host, answer);
  await streams.told(sendAnswer(place.open(reply), pieces, writer));
  return reply;
}

/** Sends what is left of an answer; a client that has gone reads nothing, and the turn is read to its end. */
async function sendAnswer(
  stream: EventStream,
  pieces: AsyncIterable<AnswerPiece>,
  writer: AnswerWriter,
): Promise<void> {
  const send = (events: readonly AnswerEvent[]): void => {
    for (const event of events) stream.send(typeof event === "string" ? event : JSON.stringify(event));
  };
  try {
    send(writer.begin());
    for await (const piece of pieces) send(writer.take(piece));
    send(writer.end());
  } catch (error) {
    send(writer.fail(refusalOf(error)));
    throw error;
  } finally {
    stream.end();
  }
}

/** Reads an answer to its end, or to the calls that its client runs. Throws the `Refusal` of one that came to nothing. */
async function wholeAnswer(answer: OpenAnswer, writer: AnswerWriter): Promise<object> {
  for await (const piece of answer.pieces()) {
    checkEnd(piece, writer.hasText, answer.isKept);
    writer.take(piece);
  }
  return writer.whole();
}

/** A turn that came to nothing is a refusal; one that was cut after it had said something is told as it is. */
function checkEnd(piece: AnswerPiece, hasText: boolean, isKept: boolean): void {
  if (piece.kind !== "end" || piece.finished.outcome === "answered" || hasText) return;
  throw refusalOfTurn(piece.finished, isKept);
}

const isSilent = ({ kind }: AnswerPiece): boolean => kind === "waiting" || kind === "begun";

/**
 * Waits for the first piece that is to be told, at most for a while; then the stream is opened, and its heartbeats keep
 * the connection. Throws the `Refusal` of an answer that has come to nothing by then.
 */
async function begunStream(host: Host, answer: OpenAnswer): Promise<AsyncIterable<AnswerPiece>> {
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
