import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { SettledTurn } from "@turnkeeper/state-store";
import type { TurnLease } from "@turnkeeper/turn-lease";
import { stopChildren } from "./stop.ts";
import { endTurn, leaseLost } from "./turn-end.ts";
import type { EndingTurn } from "./turn-end.ts";
import type { TurnEnding, TurnPause } from "./turn-ending.ts";
import type { ConductedTurn, TurnDeps } from "./turn-machinery.ts";

/** A program runs them, or a person behind it; then nobody comes back with results any more. */
const defaultResultWaitMs = 600_000;

/** A stop that was written on the turn before it could be suspended has ended it. */
function endingOfStop({ turn }: SettledTurn): TurnEnding {
  const { outcome, reason, detail, stop, usage } = turn;
  return {
    outcome,
    ...(reason === undefined ? {} : { reason }),
    ...(detail === undefined ? {} : { detail }),
    ...(stop === undefined ? {} : { stop }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/**
 * Suspends a turn over the calls that ask for approval or wait for subagents that do, and lets go of its lease (rule 7.19). Where that cannot be the
 * turn ends, and says why: its open calls did not run. Never rejects.
 */
export async function suspendTurn(
  deps: TurnDeps,
  lease: TurnLease,
  ending: EndingTurn,
  { asks, waits, usage, ifStopped, resultWaitMs = defaultResultWaitMs }: TurnPause,
): Promise<ConductedTurn> {
  const { writer, leavesProcesses } = ending;
  const spent = usage === undefined ? {} : { usage };
  const fails = (error: unknown): Promise<ConductedTurn> =>
    endTurn(deps, lease, ending, {
      ...spent,
      outcome: "failed",
      reason: CodedError.is(error) ? error.code : "INTERNAL",
      detail: messageOf(error),
      entries: ifStopped,
    });
  if (lease.lost.aborted || writer.failure) return fails(writer.failure ?? lease.lost.reason);
  try {
    const callIds = asks.map(({ callId }) => callId);
    const callers = asks.flatMap(({ callId, awaits }) => (awaits === "result" ? [callId] : []));
    const result = await writer.suspend({
      callIds,
      waits,
      ...(callers.length > 0 ? { results: { callIds: callers, waitMs: resultWaitMs } } : {}),
      ...spent,
      ...(leavesProcesses ? { leavesProcesses } : {}),
    });
    switch (result?.kind) {
      case "suspended":
        return { suspended: result.turn, asks };
      case "stopped":
        await stopChildren(deps, result.settled.turn);
        return { ending: endingOfStop(result.settled), handOver: result };
      case "was-suspended":
        // Whoever stopped it may have been the first of these very requests, whose answer was lost.
        if (result.turn.state === "ended") await stopChildren(deps, result.turn);
        return { goneOn: result.turn };
      case "stale-token":
        return { ending: leaseLost({ outcome: "interrupted", ...spent }) };
      case undefined:
        return await fails(writer.failure);
    }
  } catch (error) {
    return fails(error);
  }
}
