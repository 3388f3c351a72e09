import fastify from "fastify";
import type { FastifyInstance } from "fastify";
import type { Agent } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { carriesToken, checkBinding, isOwnHost } from "./access.ts";
import { problem, problemOf } from "./problem.ts";
import { registerSessionRoutes } from "./session-routes.ts";
import { registerTurnRoutes } from "./turn-routes.ts";

export interface GatewayDeps {
  readonly agent: Agent;
  readonly store: StateStore;
}

export interface GatewayOptions {
  /** Where to listen. Default 127.0.0.1: only this machine. */
  readonly hostname?: string;
  /** Default 8377; 0 takes a free one. */
  readonly port?: number;
  /** The bearer token every request must carry. Without one only a loopback address is served. */
  readonly token?: string;
}

export interface Gateway extends AsyncDisposable {
  readonly url: string;
  /** Stops listening and waits for the requests that run. Does not close the agent or the store. Safe to repeat. */
  close(): Promise<void>;
}

const bodyBytesMax = 2 * 1_048_576;
const requestTimeoutMs = 30_000;
/** Node looks for slow requests only so often; its default of 30 s would make the limits above it empty. */
const slowRequestCheckMs = 2000;

function guard(server: FastifyInstance, hostname: string, token: string | undefined): void {
  server.addHook("onRequest", async (request, reply) => {
    if (!isOwnHost(request.raw.rawHeaders, hostname)) {
      return reply
        .code(403)
        .type("application/problem+json")
        .send(problem(403, "host_foreign", "This gateway does not answer to that Host."));
    }
    if (token === undefined || request.url === "/healthz" || carriesToken(request.headers.authorization, token))
      return undefined;
    return reply
      .code(401)
      .header("www-authenticate", "Bearer")
      .type("application/problem+json")
      .send(problem(401, "unauthorised", "Send the gateway's token as Authorization: Bearer …"));
  });
  server.addHook("onSend", async (_request, reply) => {
    reply.header("x-content-type-options", "nosniff").header("cache-control", "no-store");
  });
}

function answerErrors(server: FastifyInstance): void {
  server.setErrorHandler((error: unknown, _request, reply) => {
    const status =
      typeof error === "object" && error !== null && "statusCode" in error ? Number(error.statusCode) : 500;
    if (CodedError.is(error, "REQUEST_INVALID"))
      return reply
        .code(400)
        .type("application/problem+json")
        .send(problem(400, "request_invalid", error.message));
    // The framework's own refusals (too large, not JSON, no such media type) say what they mean.
    if (!CodedError.is(error) && status >= 400 && status < 500 && error instanceof Error) {
      return reply
        .code(status)
        .type("application/problem+json")
        .send(problem(status, "request_invalid", error.message));
    }
    const told = problemOf(error);
    return reply.code(told.status).type("application/problem+json").send(told);
  });
  server.setNotFoundHandler((_request, reply) =>
    reply
      .code(404)
      .type("application/problem+json")
      .send(problem(404, "route_unknown", "There is no such route.")),
  );
}

/** Serves an agent and its store over HTTP. Throws `GATEWAY_UNPROTECTED` for a public address without a token, `GATEWAY_LISTEN` when the address cannot be had. */
export async function startGateway(deps: GatewayDeps, options: GatewayOptions = {}): Promise<Gateway> {
  const { hostname = "127.0.0.1", port = 8377, token } = options;
  checkBinding(hostname, token);
  const server = fastify({
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: "idle",
    http: { connectionsCheckingInterval: slowRequestCheckMs, maxHeaderSize: 16_384 },
  });
  guard(server, hostname, token);
  answerErrors(server);
  server.get("/healthz", async () => ({ status: "ok" }));
  server.get("/readyz", async (_request, reply) => {
    try {
      await deps.store.sessions.list({ limit: 1 });
      return { status: "ready" };
    } catch (error) {
      const told = problemOf(error);
      return reply
        .code(503)
        .type("application/problem+json")
        .send({ ...told, status: 503 });
    }
  });
  registerTurnRoutes(server, deps);
  registerSessionRoutes(server, deps);
  let url: string;
  try {
    url = await server.listen({ host: hostname, port });
  } catch (error) {
    await server.close();
    throw new CodedError(
      "GATEWAY_LISTEN",
      `Cannot listen on ${hostname}:${port}: ${error instanceof Error ? error.message : String(error)}. Choose another --port.`,
      { cause: error },
    );
  }
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= server.close());
  return { url, close, [Symbol.asyncDispose]: close };
}
