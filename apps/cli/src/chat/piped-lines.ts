import { decodeMessage, messageBytesMax } from "../message.ts";

const newline = 0x0a;

/** A line of stdin, or why it cannot be sent. */
export type PipedLine = { readonly text: string } | { readonly problem: unknown };

/** The lines of a pipe, one at a time; a line that is too long or no UTF-8 is told, and the next one is read. */
export async function* pipedLines(stdin: AsyncIterable<Buffer>): AsyncGenerator<PipedLine> {
  let chunks: Buffer[] = [];
  let byteCount = 0;
  const take = (): PipedLine => {
    // What is over the bound was not kept; one byte more than it is enough to be refused.
    const bytes = Buffer.concat(chunks);
    chunks = [];
    byteCount = 0;
    try {
      return { text: decodeMessage(bytes, "A line on stdin").replace(/\r$/, "") };
    } catch (problem) {
      return { problem };
    }
  };
  const keep = (piece: Buffer): void => {
    if (byteCount <= messageBytesMax) chunks.push(piece);
    byteCount += piece.byteLength;
  };
  for await (const chunk of stdin) {
    let from = 0;
    for (let at = chunk.indexOf(newline, from); at >= 0; at = chunk.indexOf(newline, from)) {
      keep(chunk.subarray(from, at));
      yield take();
      from = at + 1;
    }
    if (from < chunk.byteLength) keep(chunk.subarray(from));
  }
  if (byteCount > 0) yield take();
}
