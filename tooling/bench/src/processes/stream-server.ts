/**
 * A model on loopback: node stream-server.js CHUNKS. Answers each request with so many deltas, and sends its port. A request
 * for the model `COUNTxLENGTH` is answered with so many deltas of so many characters.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const event = (delta: object, finish: string | null): string =>
  `data: ${JSON.stringify({ id: "c-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

function answerOf(chunkCount: number, length = 0): Buffer {
  const events = Array.from({ length: chunkCount }, (_, index) =>
    event({ role: "assistant", content: `word ${index} `.padEnd(length, "z ") }, null),
  );
  return Buffer.from([...events, event({}, "stop"), "data: [DONE]\n\n"].join(""));
}

const usual = answerOf(Number(process.argv[2]));
const others = new Map<string, Buffer>();

function answerTo(request: string): Buffer {
  const [name, chunkCount, length] = /"model":"(\d+)x(\d+)"/.exec(request) ?? [];
  if (name === undefined) return usual;
  const answer = others.get(name) ?? answerOf(Number(chunkCount), Number(length));
  others.set(name, answer);
  return answer;
}

const server = createServer((request, response) => {
  let asked = "";
  request.setEncoding("utf8").on("data", (text: string) => void (asked += text));
  request.on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(answerTo(asked));
  });
});
// Whoever started it is gone: so is the reason to go on.
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
