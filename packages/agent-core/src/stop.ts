import type { EndedTurn, InterruptReason, RequestStopResult, SettledTurn } from "@turnkeeper/state-store";
import { reportDefect } from "./defect.ts";
import type { TurnDeps } from "./turn-machinery.ts";

export interface StopRequestOptions {
  /** Children too, and nothing is waited for. */
  readonly hard: boolean;
  readonly reason: InterruptReason;
  /** Who asks, for people: "cli pid 4711". */
  readonly by: string;
  /** Only the turn of this grant; any other is left alone. Default: whichever runs. */
  readonly fencingToken?: number;
}

/**
 * Asks the turn that runs on a session to stop, in whatever process it runs, and answers at once. The request is
 * stored on that turn; a wake-up makes its holder look at it now. One that waits for approval ends at once, and the head
 * of the queue is woken; a hard stop goes down to the subagents that it waited for. Pending inputs are not touched.
 */
export async function requestStop(
  deps: Pick<TurnDeps, "store" | "presence">,
  sessionId: string,
  options: StopRequestOptions,
): Promise<RequestStopResult> {
  const { fencingToken, ...stop } = options;
  const result = await deps.store.turns.requestStop(sessionId, stop, fencingToken);
  wakeThose(deps, sessionId, result);
  if (result.kind === "stopped") await stopChildren(deps, result.settled.turn);
  return result;
}

/** Ends a turn that has waited too long for results, and wakes whoever waits for it or behind it. */
export async function stopOverdue(
  deps: Pick<TurnDeps, "store" | "presence">,
  sessionId: string,
): Promise<SettledTurn | undefined> {
  const result = await deps.store.turns.stopOverdue(sessionId);
  wakeThose(deps, sessionId, result);
  if (result.kind !== "stopped") return undefined;
  await stopChildren(deps, result.settled.turn);
  return result.settled;
}

function wakeThose(deps: Pick<TurnDeps, "presence">, sessionId: string, result: RequestStopResult): void {
  const { turn } = result.kind === "stopped" ? result.settled : result.kind === "requested" ? result : {};
  const { runner } = result.kind === "stopped" && result.head ? result.head : {};
  // Only hints: whoever misses one polls.
  if (turn) void deps.presence.wake(turn.holder, sessionId).catch(() => "unknown");
  if (runner) void deps.presence.wake(runner, sessionId, runner.runnerId).catch(() => "unknown");
}

/**
 * Takes a hard stop that ended a suspended turn down to the subagents that it still waited for. After that end, so that
 * theirs cannot let it go on; one that is not reached, since this process dies first, is stopped by whoever finds it.
 */
export async function stopChildren(
  deps: Pick<TurnDeps, "store" | "presence">,
  { sessionId, turnId, stop, approvals = [] }: EndedTurn,
): Promise<void> {
  if (!stop?.hard) return;
  const by = `turn ${turnId} of session ${sessionId}`;
  for (const { child } of approvals)
    if (child && child.endedAtMs === undefined)
      await requestStop(deps, child.sessionId, { hard: true, reason: "parent", by }).catch(reportDefect);
}
