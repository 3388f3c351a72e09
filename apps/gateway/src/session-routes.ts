import type { FastifyInstance, FastifyReply } from "fastify";
import { checkedSessionId } from "@turnkeeper/agent-core";
import type { GatewayDeps } from "./gateway.ts";
import { problem } from "./problem.ts";
import { readPageQuery } from "./requests.ts";

interface SessionParams {
  readonly id: string;
}

const unknownSession = (reply: FastifyReply): FastifyReply =>
  reply
    .code(404)
    .type("application/problem+json")
    .send(problem(404, "session_unknown", "There is no such session."));

/** Where the page after `seq` starts, as an opaque cursor. */
const afterCursor = (cursor: string | undefined): number =>
  cursor !== undefined && /^\d{1,15}$/.test(cursor) ? Number(cursor) : 0;

export function registerSessionRoutes(server: FastifyInstance, { store }: GatewayDeps): void {
  server.get("/v1/sessions", async (request) => {
    const { limit, cursor } = readPageQuery(request.query);
    return store.sessions.list({ limit, ...(cursor === undefined ? {} : { cursor }) });
  });

  server.get<{ Params: SessionParams }>("/v1/sessions/:id", async (request, reply) => {
    const session = await store.sessions.read(checkedSessionId(request.params.id));
    return session ?? unknownSession(reply);
  });

  server.get<{ Params: SessionParams }>("/v1/sessions/:id/messages", async (request, reply) => {
    const sessionId = checkedSessionId(request.params.id);
    const { limit, cursor } = readPageQuery(request.query);
    if (!(await store.sessions.read(sessionId))) return unknownSession(reply);
    // One more than the page tells whether there is a next one.
    const window = { all: true, afterSeq: afterCursor(cursor), first: limit + 1 };
    const { entries } = await store.transcript.load(sessionId, window);
    const page = entries.slice(0, limit);
    const messages = page.map(({ seq, turnId, atMs, body, archived, late }) => ({
      seq,
      turnId,
      at: new Date(atMs).toISOString(),
      archived,
      late,
      ...body,
    }));
    return { messages, ...(entries.length > limit ? { nextCursor: String(page.at(-1)?.seq) } : {}) };
  });

  server.delete<{ Params: SessionParams }>("/v1/sessions/:id", async (request, reply) => {
    const result = await store.sessions.delete(checkedSessionId(request.params.id));
    switch (result.kind) {
      case "deleted":
        return reply.code(204).send();
      case "unknown":
        return unknownSession(reply);
      case "held":
        return reply
          .code(409)
          .header("retry-after", 5)
          .type("application/problem+json")
          .send(problem(409, "session_busy", `A turn runs on this session, in pid ${result.lease.holder.pid}.`));
    }
  });
}
