import type { FastifyInstance, FastifyReply } from "fastify";
import { checkedSessionId } from "@turnkeeper/agent-core";
import type { Turn, TurnFinished } from "@turnkeeper/agent-core";
import type { GatewayDeps } from "./gateway.ts";
import { problem } from "./problem.ts";
import { readStopRequest, readTurnRequest } from "./requests.ts";

interface SessionParams {
  readonly id: string;
}

/** Seconds after which a client that was refused may try again. */
const retryAfterS = 5;

function sendFinished(reply: FastifyReply, finished: TurnFinished): FastifyReply {
  if (finished.outcome === "busy") {
    return reply
      .code(409)
      .header("retry-after", retryAfterS)
      .type("application/problem+json")
      .send(problem(409, "session_busy", finished.detail ?? "The session is busy."));
  }
  if (finished.reason === "input_id_conflict") {
    return reply
      .code(409)
      .type("application/problem+json")
      .send(problem(409, "input_id_conflict", finished.detail ?? "The input id was used with other content."));
  }
  return reply.send(finished);
}

/** Streams the events of a call. A client that goes away ends the stream, not the turn. */
async function stream(reply: FastifyReply, turn: Turn): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  let id = 0;
  for await (const event of turn) {
    if (raw.destroyed) continue;
    raw.write(`id: ${++id}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  raw.end();
}

export function registerTurnRoutes(server: FastifyInstance, { agent }: GatewayDeps): void {
  server.post<{ Params: SessionParams }>("/v1/sessions/:id/turns", async (request, reply) => {
    const { input, inputId, onBusy, waitTimeoutMs } = readTurnRequest(request.body);
    const turn = agent.run(request.params.id, input, {
      ...(inputId === undefined ? {} : { inputId }),
      ...(onBusy === undefined ? {} : { onBusy }),
      ...(waitTimeoutMs === undefined ? {} : { waitMs: waitTimeoutMs }),
      // Nobody can be asked over this route yet.
      approval: "deny",
    });
    if (request.headers.accept?.includes("text/event-stream")) return stream(reply, turn);
    return sendFinished(reply, await turn.result);
  });

  server.post<{ Params: SessionParams }>("/v1/sessions/:id/stop", async (request, reply) => {
    const { hard = false } = readStopRequest(request.body);
    const result = await agent.stop(checkedSessionId(request.params.id), { hard, by: "http" });
    if (result.kind === "requested") return reply.code(202).send({ turnId: result.turn.turnId });
    return reply
      .code(404)
      .type("application/problem+json")
      .send(problem(404, "nothing_running", "No turn runs on this session."));
  });
}
