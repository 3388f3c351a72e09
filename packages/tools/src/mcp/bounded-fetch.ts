// Longer than any event or document of a server that means well; the calls' time limits bound the rest.
const replyBytesMax = 67_108_864;

/** `fetch`, whose replies end in an error beyond their bound: a stream without an end would fill the memory. */
export const boundedFetch: typeof fetch = async (input, init) => {
  const reply = await fetch(input, init);
  if (reply.body === null) return reply;
  let restBytes = replyBytesMax;
  const bound = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      restBytes -= chunk.byteLength;
      if (restBytes < 0) controller.error(new Error(`The reply is longer than ${replyBytesMax} bytes.`));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = reply;
  return new Response(reply.body.pipeThrough(bound), { status, statusText, headers });
};
