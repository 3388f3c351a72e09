/** A model on loopback: node stream-server.js CHUNKS. Answers each request with so many deltas, and sends its port. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const chunkCount = Number(process.argv[2]);

const event = (delta: object, finish: string | null): string =>
  `data: ${JSON.stringify({ id: "c-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const body = [
  ...Array.from({ length: chunkCount }, (_, index) => event({ role: "assistant", content: `word ${index} ` }, null)),
  event({}, "stop"),
  "data: [DONE]\n\n",
].join("");

const server = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(body);
  });
});
// Whoever started it is gone: so is the reason to go on.
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
