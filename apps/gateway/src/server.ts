import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import fastify, { LogController } from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Access } from "./access.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { logOptions } from "./log-options.ts";
import { errorOf } from "./openai/openai-error.ts";
import { drainingRefusal, problemOf, Refusal, refusalOf } from "./refusal.ts";
import { registerRoute, routeConfigOf } from "./route.ts";
import type { Route } from "./route.ts";

/** A whole request must have come within this; slow bodies hold a connection and nothing else. */
const requestTimeoutMs = 30_000;
const headersTimeoutMs = 10_000;
/** Node looks for slow requests only so often; its default of 30 s would make the limits above it empty. */
const slowRequestCheckMs = 2000;
/** Longer than the idle bound of the usual proxies, so that it is they who close first. */
const keepAliveMs = 75_000;
const headerBytesMax = 16_384;

/** What every answer carries; a page of the gateway sets its own policy. */
const securityHeaders: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

const requestIdPattern = /^[\w.:-]{1,64}$/;

/** Tells a refusal as the route wants it told, else as a problem. */
function sendRefusal(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): FastifyReply {
  const tell = routeConfigOf(request).tellRefusal;
  const { body, contentType } = tell?.(refusal, request.id) ?? {
    body: problemOf(refusal, request.id),
    contentType: "application/problem+json",
  };
  return reply.code(refusal.status).headers(refusal.headers).type(contentType).send(body);
}

/** What is no HTTP, too slow or too large in its head never becomes a request; it is told on the bare socket. */
function tellOnSocket(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const told: Readonly<Record<string, readonly [number, string, string]>> = {
    HPE_HEADER_OVERFLOW: [431, "headers_too_large", `The headers have more than ${headerBytesMax} bytes.`],
    ERR_HTTP_REQUEST_TIMEOUT: [408, "request_too_slow", "The request did not come in time."],
  };
  const [status, code, detail] = told[error.code ?? ""] ?? [400, "request_invalid", "This is no HTTP request."];
  const refusal = new Refusal(status, code, detail);
  const problem = problemOf(refusal);
  const body = JSON.stringify(problem);
  const headers = {
    ...securityHeaders,
    connection: "close",
    "content-type": "application/problem+json",
    "content-length": Buffer.byteLength(body),
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${problem.title}\r\n${head.join("")}\r\n${body}`);
}

/** Compressed bodies are not read: a small one could become a large one. */
function checkEncoding({ headers }: FastifyRequest): void {
  const encoding = headers["content-encoding"];
  if (encoding === undefined || encoding.trim().toLowerCase() === "identity") return;
  throw new Refusal(415, "content_encoding_unsupported", "Send the body as it is, without a Content-Encoding.");
}

/** Whether somebody must be told of an error in the log: a refusal without a cause is an answer like any other. */
const isFault = (error: unknown, { status }: Refusal): boolean =>
  status >= 500 && !(error instanceof Refusal && error.cause === undefined);

/** Refuses whom it does not serve, marks every answer, and tells every error by a stable code. */
export function createServer(parts: GatewayParts, routes: readonly Route[]): FastifyInstance {
  const { options, host } = parts;
  const access = new Access(options);
  /** Marks the answer and throws the refusal of whom it is not for; whether it was a preflight, which ends with this. */
  const admit = (request: FastifyRequest, reply: FastifyReply): boolean => {
    reply.headers(securityHeaders).header("x-request-id", request.id);
    if (access.answersPreflight(request, reply)) return true;
    access.check(request);
    checkEncoding(request);
    if (parts.isDraining() && routeConfigOf(request).access !== "open") throw drainingRefusal();
    return false;
  };
  const noteAnswer = (request: FastifyRequest, reply: FastifyReply): void => {
    const { method, routeOptions } = request;
    const durationMs = Math.round(reply.elapsedTime);
    const labels = { method, route: routeOptions.url ?? "none", status: reply.statusCode };
    parts.metrics.request(labels, reply.elapsedTime);
    request.log.info({ method, route: routeOptions.url, status: reply.statusCode, durationMs }, "request");
  };
  const server: FastifyInstance = fastify({
    bodyLimit: options.limits.bodyBytes,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveMs,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    requestIdHeader: false,
    genReqId: ({ headers }: IncomingMessage) => {
      const given = headers["x-request-id"];
      return typeof given === "string" && requestIdPattern.test(given) ? given : host.random.id();
    },
    // A stream has no head alone.
    exposeHeadRoutes: false,
    // How long an id may be is for its route's schema to say; no path is longer than the head.
    routerOptions: { maxParamLength: headerBytesMax },
    http: {
      connectionsCheckingInterval: slowRequestCheckMs,
      headersTimeout: headersTimeoutMs,
      maxHeaderSize: headerBytesMax,
      // One without a Host is refused like one with a foreign Host.
      requireHostHeader: false,
    },
    clientErrorHandler: tellOnSocket,
    // A path that cannot be decoded comes here past every hook.
    frameworkErrors: (error, request, reply) => {
      reply.raw.once("finish", () => noteAnswer(request, reply));
      let refusal = refusalOf(error);
      try {
        admit(request, reply);
      } catch (first) {
        refusal = refusalOf(first);
      }
      void sendRefusal(request, reply, refusal);
    },
    logger: logOptions(options.log),
  });
  server.server.maxConnections = options.limits.connectionCount;
  // Whoever has said all there is to say may still read: its answer comes, however slow the turn is.
  Object.assign(server.server, { httpAllowHalfOpen: true });
  // What a client expects beyond 100-continue need not be met (RFC 9110), and Node's own refusal would pass every hook.
  server.server.on("checkExpectation", (request, response) => server.server.emit("request", request, response));
  // A page elsewhere may send text without asking first; only JSON is read.
  server.removeContentTypeParser("text/plain");
  // Not async: every request would pay for the promises.
  server.addHook("onRequest", (request, reply, done) => {
    try {
      if (admit(request, reply)) return void reply.code(204).send();
    } catch (error) {
      return done(error as Error);
    }
    return done();
  });
  server.addHook("onResponse", (request, reply, done) => {
    noteAnswer(request, reply);
    done();
  });
  server.setErrorHandler((error: unknown, request, reply) => {
    const refusal = refusalOf(error);
    if (isFault(error, refusal)) request.log.error({ err: error, code: refusal.code }, "request failed");
    // A stream that had begun has no other end than its end.
    if (reply.raw.headersSent) return reply;
    return sendRefusal(request, reply, refusal);
  });
  server.setNotFoundHandler((request, reply) => {
    const refusal = new Refusal(404, "route_unknown", "There is no such route.");
    const problem = problemOf(refusal, request.id);
    // A client of OpenAI's API reads `error` alone, and asks for routes of that API that are not here.
    return reply
      .code(404)
      .type("application/problem+json")
      .send({ ...problem, error: errorOf(refusal) });
  });
  for (const route of routes) registerRoute(server, route);
  return server;
}
