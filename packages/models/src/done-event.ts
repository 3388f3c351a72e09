/**
 * The OpenAI format ends with `data: [DONE]`, and a client may rely on it; the AI SDK waits for the end of the body. A
 * server that keeps the connection open behind its last event would turn a complete answer into a timeout.
 */

// At the start of a line and at the end of what has come: inside JSON a line break is escaped, so content cannot match.
const doneAtEnd = /(?:^|\n|\r)data: ?\[DONE\][\r\n]*$/;
const tailLength = 24;

const endOf = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).subarray(-tailLength).toString("latin1");

/** The same bytes, ended after `data: [DONE]`; what is left of the source is handed to `disposeOfRest`. */
export function endedAtDone(
  source: ReadableStream<Uint8Array>,
  disposeOfRest: (rest: ReadableStreamDefaultReader<Uint8Array>) => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let tail = "";
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        controller.enqueue(value);
        tail = (tail + endOf(value)).slice(-tailLength);
        if (!doneAtEnd.test(tail)) return;
        controller.close();
        disposeOfRest(reader);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
