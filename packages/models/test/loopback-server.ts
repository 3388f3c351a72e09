import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createSocketServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
  /** Resolves when the server sees the request's socket closed. */
  readonly closed: Promise<unknown>;
}

export interface LoopbackServer {
  readonly url: string;
  readonly requests: SeenRequest[];
  /** Resolves with the next request that arrives, or the first one when it is there already. */
  readonly firstRequest: Promise<SeenRequest>;
  readonly server: Server;
}

const closings = new WeakMap<Socket, Promise<unknown>>();

/** One promise for each socket: many requests may share it. */
function closeOf(socket: Socket): Promise<unknown> {
  const closing = closings.get(socket) ?? new Promise((resolve) => socket.once("close", resolve));
  closings.set(socket, closing);
  return closing;
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

/** An HTTP server on loopback that ends with the test. */
export async function httpServer(
  answer: (request: SeenRequest, response: ServerResponse) => void | Promise<void>,
): Promise<LoopbackServer> {
  const requests: SeenRequest[] = [];
  let announce: (request: SeenRequest) => void = () => {};
  const firstRequest = new Promise<SeenRequest>((resolve) => (announce = resolve));
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    const closed = closeOf(incoming.socket);
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const body = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
      const { method = "", url: path = "", headers } = incoming;
      const request: SeenRequest = { method, path, headers, body, closed };
      requests.push(request);
      announce(request);
      void answer(request, response);
    });
  });
  const url = await listen(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url, requests, firstRequest, server };
}

/** A TCP server on loopback that hands each connection over once its first bytes came; ends with the test. */
export async function socketServer(
  behave: (socket: Socket) => void,
): Promise<{ readonly url: string; readonly port: number }> {
  const sockets = new Set<Socket>();
  const server = createSocketServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", () => behave(socket));
  });
  const url = await listen(server);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url, port: Number(new URL(url).port) };
}

export type WireFormat = "openai" | "anthropic";

/** A recorded payload as one server-sent event. */
export function eventOf(line: string, format: WireFormat): string {
  const { type } = JSON.parse(line) as { type?: string };
  return format === "anthropic" ? `event: ${type}\ndata: ${line}\n\n` : `data: ${line}\n\n`;
}

/** Recorded payloads as the whole body of a stream. */
export function bodyOf(lines: readonly string[], format: WireFormat): string {
  const events = lines.map((line) => eventOf(line, format)).join("");
  return format === "openai" ? `${events}data: [DONE]\n\n` : events;
}

export function startStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
}

/** A server that answers every request with these recorded payloads, one write for each. */
export function streamServer(lines: readonly string[], format: WireFormat): Promise<LoopbackServer> {
  return httpServer((_request, response) => {
    startStream(response);
    for (const line of lines) response.write(eventOf(line, format));
    response.end(format === "openai" ? "data: [DONE]\n\n" : "");
  });
}
