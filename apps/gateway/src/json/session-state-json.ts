import type { SessionState, TurnStatus } from "@turnkeeper/agent-core";
import { askedJson, isoTime, subagentJson } from "./session-json.ts";
import { stopsInMs, whatIsNext } from "./what-is-next.ts";

/** What a turn is doing, as its process says. */
export function turnStatusJson(status: TurnStatus): Record<string, unknown> {
  return {
    last: status.lastProgress,
    ageMs: Math.round(status.idleMs),
    waits: status.waits.map(({ kind, name, endsInMs }) => ({ kind, name, endsInMs: Math.round(endsInMs) })),
    stopsInMs: stopsInMs(status) ?? null,
  };
}

/** A session's state for programs; times are the store's. `startOne` as for `whatIsNext`. */
export function sessionStateJson(state: SessionState, startOne: string): Record<string, unknown> {
  const { sessionId, atMs, lease, holderPulse, turn, lastStep, status, waiting } = state;
  const approvals = turn?.state === "suspended" ? turn.approvals : [];
  return {
    session: sessionId,
    holder: lease
      ? { pid: lease.holder.pid, host: lease.holder.host, instanceId: lease.holder.instanceId, state: holderPulse }
      : null,
    lease: lease
      ? {
          fencingToken: lease.fencingToken,
          standing: lease.standing,
          expiresInMs: Math.round(lease.expiresInMs),
          ttlMs: lease.ttlMs,
          renewCount: lease.renewCount,
        }
      : null,
    turn: turn
      ? {
          turnId: turn.turnId,
          state: turn.state,
          asks: approvals
            .filter(({ answer, child }) => !child || answer)
            .map((call) => ({ ...askedJson(call), decision: call.answer?.decision ?? null })),
          subagents: approvals.flatMap(({ callId, child }) => (child ? [{ callId, ...subagentJson(child) }] : [])),
          startedAt: isoTime(turn.startedAtMs),
          ageMs: Math.max(0, atMs - turn.startedAtMs),
          stop: turn.stop
            ? { hard: turn.stop.hard, reason: turn.stop.reason, by: turn.stop.by, at: isoTime(turn.stop.atMs) }
            : null,
        }
      : null,
    progress: status ? turnStatusJson(status) : null,
    lastStep: lastStep ? { what: lastStep.what, at: isoTime(lastStep.atMs) } : null,
    pending: waiting.map(({ input, pulse }) => ({
      inputId: input.inputId,
      delivery: input.delivery,
      at: isoTime(input.offeredAtMs),
      runner: input.runner ? { pid: input.runner.pid, host: input.runner.host, state: pulse } : null,
    })),
    next: whatIsNext(state, startOne),
  };
}
