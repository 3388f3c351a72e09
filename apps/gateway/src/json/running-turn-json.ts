import type { RunningTurnState } from "@turnkeeper/agent-core";
import { isoTime } from "./session-json.ts";

/** A running turn for programs. */
export function runningTurnJson(state: RunningTurnState): Record<string, unknown> {
  const { turn, lease, pendingCount, pulse, ageMs } = state;
  return {
    session: turn.sessionId,
    turnId: turn.turnId,
    pid: turn.holder.pid,
    host: turn.holder.host,
    state: pulse,
    startedAt: isoTime(turn.startedAtMs),
    ageMs,
    fencingToken: turn.fencingToken,
    expiresInMs: lease ? Math.round(lease.expiresInMs) : null,
    pendingCount,
    stop: turn.stop ? { hard: turn.stop.hard, by: turn.stop.by } : null,
  };
}
