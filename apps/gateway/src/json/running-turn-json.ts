import type { RunningTurnState } from "@turnkeeper/agent-core";
import { isoTime } from "./session-json.ts";

/** A running turn for programs; its age is by wall time. */
export function runningTurnJson(
  { turn, lease, pendingCount, pulse }: RunningTurnState,
  nowMs: number,
): Record<string, unknown> {
  return {
    session: turn.sessionId,
    turnId: turn.turnId,
    pid: turn.holder.pid,
    host: turn.holder.host,
    state: pulse,
    startedAt: isoTime(turn.startedAtMs),
    ageMs: Math.max(0, nowMs - turn.startedAtMs),
    fencingToken: turn.fencingToken,
    expiresInMs: lease ? Math.round(lease.expiresInMs) : null,
    pendingCount,
    stop: turn.stop ? { hard: turn.stop.hard, by: turn.stop.by } : null,
  };
}
