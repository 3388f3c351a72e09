import type { RunOptions, TurnFinished } from "@turnkeeper/agent-core";
import type { OnBusy } from "@turnkeeper/state-store";
import { z } from "zod";
import { sendCall } from "./call-stream.ts";
import { whenClientGone } from "./client-gone.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { Refusal, retryLater, storeRefusal } from "./refusal.ts";
import { defineRoute } from "./route.ts";
import type { Route } from "./route.ts";
import { conversationOfKey, sessionKeyOf, sessionKeyText } from "./session-key.ts";
import { traceParentOf } from "./trace-parent.ts";
import { callPath, sessionPath } from "./session-path.ts";
import { isOfStore, toldEnd } from "./told-end.ts";

interface TurnRequest {
  readonly input: string;
  readonly inputId?: string | undefined;
  readonly onBusy?: OnBusy | undefined;
  readonly waitTimeoutMs?: number | undefined;
  readonly approval?: "ask" | "deny" | undefined;
  readonly stopWhenGone?: boolean | undefined;
}

interface ApprovalRequest {
  readonly decision: "allow" | "deny";
  readonly turnId?: string | undefined;
}

const turnRequest: z.ZodType<TurnRequest> = z.strictObject({
  input: z.string().describe("The message."),
  inputId: z
    .string()
    .optional()
    .describe(
      "Idempotency key: the same id with the same input runs once, however often it is sent. Default: a new one.",
    ),
  onBusy: z
    .enum(["wait", "reject", "queue", "steer", "interrupt"])
    .optional()
    .describe("What to do while another turn runs on the session. Default: wait."),
  waitTimeoutMs: z.number().nonnegative().max(86_400_000).optional().describe("How long to wait for a busy session."),
  approval: z
    .enum(["ask", "deny"])
    .optional()
    .describe(
      "What becomes of calls that need approval: the turn waits for an answer to each, or they are denied. Default: ask where events are streamed, else deny.",
    ),
  stopWhenGone: z
    .boolean()
    .optional()
    .describe("Stop the turn when this client goes away before it has ended. Default: it goes on."),
});

const stopRequest: z.ZodType<{ readonly hard?: boolean | undefined }> = z.strictObject({
  hard: z.boolean().optional().describe("At once, without letting a tool finish."),
});

const approvalRequest: z.ZodType<ApprovalRequest> = z.strictObject({
  decision: z.enum(["allow", "deny"]),
  turnId: z.string().optional().describe("Only a call of this turn. Default: whichever asks now."),
});

const turnFinished: z.ZodType = z.looseObject({
  type: z.literal("turn.finished"),
  sessionId: z.string(),
  turnId: z.string().optional(),
  at: z.iso.datetime(),
  outcome: z.enum(["answered", "interrupted", "failed", "cancelled", "queued", "busy"]),
  text: z.string(),
  reason: z.string().optional(),
  detail: z.string().optional(),
  by: z.string().optional(),
  retryable: z.literal(true).optional(),
  usage: z.record(z.string(), z.number()).optional(),
});

/** The ends of a call that are no answer to a request. */
export function refusalOfEnd({ outcome, reason, detail, turnId }: TurnFinished): Refusal | undefined {
  if (outcome === "busy")
    return new Refusal(409, "session_busy", detail ?? "The session is busy.", { headers: retryLater });
  if (reason === "input_id_conflict")
    return new Refusal(409, "input_id_conflict", detail ?? "The input id was used with other content.");
  if (turnId === undefined && isOfStore(reason)) return storeRefusal(reason);
  return undefined;
}

const wantsEvents = (accept: string | undefined): boolean => (accept ?? "").includes("text/event-stream");

export function turnRoutes({ agent, calls, streams, store, host, live }: GatewayParts): readonly Route[] {
  const runTurn = defineRoute({
    method: "POST",
    path: "/v1/sessions/{sessionId}/turns",
    name: "runTurn",
    summary: "Runs one input as a turn: the end as JSON, or every event with Accept: text/event-stream.",
    params: sessionPath,
    body: turnRequest,
    headers: { "X-Session-Key": sessionKeyText },
    answers: {
      200: { description: "How the call ended; as an event stream, each event with an id.", schema: turnFinished },
    },
    refusals: [409, 429],
    handle: async ({ params, body, headers }, reply) => {
      const { input, inputId, onBusy, waitTimeoutMs, stopWhenGone = false } = body;
      const isStream = wantsEvents(headers.accept);
      const [sessionKey, traceParent] = [sessionKeyOf(headers), traceParentOf(headers)];
      const settings = {
        ...(sessionKey === undefined ? {} : { conversation: conversationOfKey(sessionKey) }),
        ...(traceParent === undefined ? {} : { traceParent }),
      };
      const options: RunOptions = {
        ...(inputId === undefined ? {} : { inputId }),
        ...(onBusy === undefined ? {} : { onBusy }),
        ...(waitTimeoutMs === undefined ? {} : { waitMs: waitTimeoutMs }),
        ...(Object.keys(settings).length === 0 ? {} : { settings }),
        approval: body.approval ?? (isStream ? "ask" : "deny"),
      };
      using place = isStream ? streams.place() : undefined;
      const turn = await calls.run(params.sessionId, input, options);
      if (stopWhenGone) whenClientGone(reply, () => turn.stop({ by: "http client that went away" }));
      if (!place) {
        const finished = await turn.result;
        const refusal = refusalOfEnd(finished);
        if (refusal) throw refusal;
        return toldEnd(finished);
      }
      await streams.told(sendCall(place.open(reply), turn, { store, host, live }));
      return reply;
    },
  });

  const stopTurn = defineRoute({
    method: "POST",
    path: "/v1/sessions/{sessionId}/stop",
    name: "stopTurn",
    summary: "Asks the session's running turn to stop, in whatever process it runs; answers at once.",
    params: sessionPath,
    body: stopRequest,
    answers: { 202: { description: "It was asked to.", schema: z.object({ turnId: z.string() }) } },
    refusals: [404],
    handle: async ({ params, body }, reply) => {
      const result = await agent.stop(params.sessionId, { hard: body.hard ?? false, by: "http" });
      if (result.kind === "nothing-running") throw new Refusal(404, "nothing_running", "No turn runs on this session.");
      const { turn } = result.kind === "stopped" ? result.settled : result;
      return reply.code(202).send({ turnId: turn.turnId });
    },
  });
  const answerCall = defineRoute({
    method: "POST",
    path: "/v1/sessions/{sessionId}/approvals/{callId}",
    name: "answerCall",
    summary: "Allows or denies a call that a turn waits for, whatever process asked; the first answer counts.",
    params: callPath,
    body: approvalRequest,
    answers: {
      200: {
        description: "It is stored. `open` are the calls that the turn still waits for.",
        schema: z.object({ turnId: z.string(), open: z.array(z.string()), isResumed: z.boolean() }),
      },
    },
    refusals: [404, 409],
    handle: async ({ params, body }) => {
      const { decision, turnId } = body;
      const answer = { decision, by: "http", ...(turnId === undefined ? {} : { turnId }) };
      const outcome = await agent.answer(params.sessionId, params.callId, answer);
      switch (outcome.kind) {
        case "recorded":
          return { turnId: outcome.turn.turnId, open: [...outcome.openCallIds], isResumed: outcome.isResumed };
        case "already-answered":
          throw new Refusal(409, "already_answered", `The call was answered before: ${outcome.answer.decision}.`);
        case "nothing-asked":
          throw new Refusal(
            404,
            "nothing_asked",
            "Nobody is asked to allow or deny this call on this session; a client's own call waits for its result alone.",
          );
      }
    },
  });
  return [runTurn, stopTurn, answerCall];
}
