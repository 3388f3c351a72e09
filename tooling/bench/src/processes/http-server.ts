/**
 * A server on loopback: node http-server.js KIND [PROVIDER FILE]. Sends its port; answers `usage` with what it has used,
 * and `stream` by sending so many events to every open stream.
 */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createAgent } from "@turnkeeper/agent-core";
import { startGateway } from "@turnkeeper/gateway";
import { systemHost } from "@turnkeeper/kernel";
import { resolveModel } from "@turnkeeper/models";
import { createMemoryStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import fastify from "fastify";
import { pacedModel } from "../paced-model.ts";
import { httpToken } from "../http-target.ts";
import type { HttpAnswer, HttpCommand, HttpServerKind } from "../http-target.ts";

interface Served {
  readonly port: number;
  /** Sends so many events to each open stream, one in each turn of the event loop. */
  stream(eventCount: number): Promise<void>;
}

const [kind, providerUrl, storeFile] = process.argv.slice(2) as [HttpServerKind, string?, string?];

/** What the gateway answers, from a server that does nothing else. */
const message = JSON.stringify({ messages: [{ role: "user", text: "Go on.", seq: 1, at: new Date().toISOString() }] });
/** What it answers to an input that it has run: the end of its turn, as it is stored. */
const finished = JSON.stringify({
  type: "turn.finished",
  text: "word 1 ",
  outcome: "answered",
  usage: { inputTokens: 10, outputTokens: 1 },
  sessionId: "s",
  turnId: "01JTURNOFTHEBENCH000000000",
  at: new Date().toISOString(),
});
const isKnown = (authorization: string | undefined): boolean => authorization === `Bearer ${httpToken}`;
const streamHead = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" };

/** Reads and checks an input as little as one may. */
function answerInput(request: IncomingMessage, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => void pieces.push(piece));
  request.on("end", () => {
    const { input } = JSON.parse(Buffer.concat(pieces).toString("utf8")) as { readonly input: unknown };
    response.writeHead(typeof input === "string" ? 200 : 400, { "content-type": "application/json" }).end(finished);
  });
}

async function sendEach(open: ReadonlySet<ServerResponse>, eventCount: number): Promise<void> {
  for (let index = 1; index <= eventCount; index++) {
    await new Promise((resolve) => setImmediate(resolve));
    const at = new Date().toISOString();
    for (const response of open) {
      const event = { type: "text.delta", text: `word ${index} `, sessionId: "s", turnId: "t", at };
      response.write(`id: t:${index}:0\ndata: ${JSON.stringify(event)}\n\n`);
    }
  }
}

async function bare(): Promise<Served> {
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    if (!isKnown(request.headers.authorization)) return response.writeHead(401).end();
    if (request.method === "POST") return answerInput(request, response);
    if (request.url?.endsWith("/events")) {
      open.add(response.writeHead(200, streamHead));
      response.flushHeaders();
      return response.on("close", () => open.delete(response));
    }
    return response.writeHead(200, { "content-type": "application/json" }).end(message);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, stream: (eventCount) => sendEach(open, eventCount) };
}

async function onFastify(): Promise<Served> {
  const open = new Set<ServerResponse>();
  const server = fastify();
  server.addHook("onRequest", async (request, reply) => {
    if (!isKnown(request.headers.authorization)) await reply.code(401).send();
  });
  server.get("/v1/sessions/:id/messages", async (_request, reply) => reply.type("application/json").send(message));
  const body = {
    type: "object",
    required: ["input"],
    additionalProperties: false,
    properties: { input: { type: "string" }, inputId: { type: "string" } },
  };
  server.post("/v1/sessions/:id/turns", { schema: { body } }, async (_request, reply) =>
    reply.type("application/json").send(finished),
  );
  server.get("/v1/sessions/:id/events", (_request, reply) => {
    reply.hijack();
    open.add(reply.raw.writeHead(200, streamHead));
    reply.raw.flushHeaders();
    reply.raw.on("close", () => open.delete(reply.raw));
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  return { port: (server.server.address() as AddressInfo).port, stream: (eventCount) => sendEach(open, eventCount) };
}

async function ours(): Promise<Served> {
  const host = systemHost;
  const store = storeFile === undefined ? createMemoryStore({ host }) : await openSqliteStore(storeFile, { host });
  const providers = { "openai-compatible": { baseUrl: providerUrl ?? "" } };
  let eventCount = 1;
  const paced = pacedModel(1);
  const model =
    providerUrl === undefined
      ? {
          ...paced,
          languageModel: {
            ...paced.languageModel,
            doStream: async (request: Parameters<typeof paced.languageModel.doStream>[0]) =>
              pacedModel(eventCount).languageModel.doStream(request),
          },
        }
      : await resolveModel("openai-compatible/m", { host, providers });
  const agent = await createAgent({ store, model });
  const limits = { streamCount: 5000, connectionCount: 10_000 };
  const { url } = await startGateway({ agent, store }, { port: 0, token: httpToken, limits });
  if (providerUrl === undefined) await agent.run("s", "Go on.", { inputId: "one" }).result;
  const stream = async (count: number): Promise<void> => {
    eventCount = count;
    await agent.run("s", "Go on.").result;
  };
  return { port: Number(new URL(url).port), stream };
}

const kinds: Readonly<Record<HttpServerKind, () => Promise<Served>>> = {
  "node:http": bare,
  fastify: onFastify,
  gateway: ours,
};
const served = await kinds[kind]();
const tell = (answer: HttpAnswer): void => void process.send?.(answer);

process.on("message", (command: HttpCommand) => {
  if (command.act === "stream") return void served.stream(command.eventCount).then(() => tell({ act: "stream" }));
  globalThis.gc?.();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return tell({ act: "usage", cpuUs: user + system, rssBytes: rss, heapBytes: heapUsed });
});
// Whoever started it is gone: so is the reason to go on.
process.on("disconnect", () => process.exit());
tell({ act: "ready", port: served.port });
