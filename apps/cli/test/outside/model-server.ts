/** Providers on loopback that say what a test wants: real sockets, real event streams. */
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach } from "vitest";

export interface ModelRequest {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: {
    readonly messages: readonly { readonly role: string; readonly content: unknown }[];
    readonly [field: string]: unknown;
  };
  /** How many requests came before this one. */
  readonly index: number;
}

export type Answer = (response: ServerResponse, request: ModelRequest) => void | Promise<void>;

export interface ModelServer {
  /** Ends with /v1, as a base URL does. */
  readonly url: string;
  readonly requests: readonly ModelRequest[];
  /** Resolves when the first request has come. */
  readonly asked: Promise<void>;
  close(): Promise<void>;
}

const servers: Server[] = [];

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

afterEach(async () => {
  for (const server of servers.splice(0)) await closeServer(server);
});

/** Answers the requests in order; the last answer goes on for all that follow. */
export async function serveModel(...answers: readonly Answer[]): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  const first = makeGate();
  const server = createServer((message, response) => {
    const chunks: Buffer[] = [];
    message.on("data", (chunk: Buffer) => chunks.push(chunk));
    message.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as ModelRequest["body"];
      const request = { url: message.url ?? "", headers: message.headers, body, index: requests.length };
      requests.push(request);
      first.open();
      const answer = answers[Math.min(request.index, answers.length - 1)];
      void answer?.(response, request);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    asked: first.opened,
    close: () => closeServer(server),
  };
}

function openStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}

const chunkOf = (delta: unknown, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: "chat-1", object: "chat.completion.chunk", created: 1, model: "test", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const usageChunk = `data: ${JSON.stringify({ id: "chat-1", object: "chat.completion.chunk", created: 1, model: "test", choices: [], usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } })}\n\n`;

/** Text in the format of OpenAI's chat completions, one delta a piece. */
export function openAiText(...pieces: readonly string[]): Answer {
  return (response) => {
    openStream(response);
    for (const content of pieces) response.write(chunkOf({ role: "assistant", content }));
    response.end(`${chunkOf({}, "stop")}${usageChunk}data: [DONE]\n\n`);
  };
}

/** Text, then one tool call whose arguments come in two fragments. */
export function openAiCall(name: string, args: string, text = ""): Answer {
  return (response, { index }) => {
    openStream(response);
    if (text !== "") response.write(chunkOf({ role: "assistant", content: text }));
    const half = Math.ceil(args.length / 2);
    response.write(
      chunkOf({
        tool_calls: [
          { index: 0, id: `call_${index}`, type: "function", function: { name, arguments: args.slice(0, half) } },
        ],
      }),
    );
    response.write(chunkOf({ tool_calls: [{ index: 0, function: { arguments: args.slice(half) } }] }));
    response.end(`${chunkOf({}, "tool_calls")}${usageChunk}data: [DONE]\n\n`);
  };
}

/** Begins an answer and then says nothing more. */
export function openAiStall(...pieces: readonly string[]): Answer {
  return (response) => {
    openStream(response);
    for (const content of pieces) response.write(chunkOf({ role: "assistant", content }));
    response.flushHeaders();
  };
}

/** A moment that the test decides. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function makeGate(): Gate {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Begins an answer, and ends it once the gate is open. */
export function openAiGatedText(gate: Gate, begin: string, end: string): Answer {
  return async (response) => {
    openStream(response);
    response.write(chunkOf({ role: "assistant", content: begin }));
    await gate.opened;
    response.write(chunkOf({ content: end }));
    response.end(`${chunkOf({}, "stop")}${usageChunk}data: [DONE]\n\n`);
  };
}

/** Text in Anthropic's format. */
export function anthropicText(...pieces: readonly string[]): Answer {
  return (response) => {
    openStream(response);
    anthropicStart(response);
    send(response, "content_block_start", { index: 0, content_block: { type: "text", text: "" } });
    for (const text of pieces) send(response, "content_block_delta", { index: 0, delta: { type: "text_delta", text } });
    anthropicEnd(response, 0, "end_turn");
  };
}

export function anthropicCall(name: string, args: string): Answer {
  return (response, { index }) => {
    openStream(response);
    anthropicStart(response);
    send(response, "content_block_start", {
      index: 0,
      content_block: { type: "tool_use", id: `toolu_${index}`, name, input: {} },
    });
    const half = Math.ceil(args.length / 2);
    for (const partial_json of [args.slice(0, half), args.slice(half)])
      send(response, "content_block_delta", { index: 0, delta: { type: "input_json_delta", partial_json } });
    anthropicEnd(response, 0, "tool_use");
  };
}

function send(response: ServerResponse, type: string, fields: object): void {
  response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
}

function anthropicStart(response: ServerResponse): void {
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "test",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 11, output_tokens: 1 },
  };
  send(response, "message_start", { message });
}

function anthropicEnd(response: ServerResponse, index: number, stop_reason: string): void {
  send(response, "content_block_stop", { index });
  send(response, "message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 7 } });
  send(response, "message_stop", {});
  response.end();
}

/** An HTTP error as providers send them. */
export function httpError(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = { "content-type": "application/json" },
): Answer {
  return (response) => {
    response.writeHead(status, headers);
    response.end(body);
  };
}

/** The settings that lead to a server. */
export function compatibleConfig(server: ModelServer, rest = ""): string {
  return `model: openai-compatible/test\nproviders:\n  openai-compatible: { base_url: "${server.url}" }\n${rest}`;
}
