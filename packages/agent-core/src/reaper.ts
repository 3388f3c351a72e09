import type {
  Grant,
  LeaseView,
  OpenTurn,
  OpenTurnView,
  SettledTurn,
  SettleForeignResult,
} from "@turnkeeper/state-store";
import { stopOfParent } from "./delegation/orphaned-child.ts";
import { processMarkerOf } from "./process-marker.ts";
import { requestStop, stopOverdue } from "./stop.ts";
import type { TurnDeps } from "./turn-machinery.ts";

export type ReapDeps = Pick<TurnDeps, "store" | "presence" | "endProcesses">;

/** The grant of a lease whose holder is provably gone; nothing for one that may live. */
export async function deadGrantOf(deps: Pick<ReapDeps, "presence">, lease: LeaseView): Promise<Grant | undefined> {
  const grant: Grant = {
    sessionId: lease.sessionId,
    holderId: lease.holder.holderId,
    fencingToken: lease.fencingToken,
  };
  if (lease.standing === "expired") return grant;
  const first = await deps.presence.probe(lease.holder, lease.holder.holderId);
  if (first === "dead") return grant;
  // A live process that does not know the lease has leaked it; asked twice, since a grant is registered just before it is sent.
  if (first === "unknown-here" && (await deps.presence.probe(lease.holder, lease.holder.holderId)) === "unknown-here")
    return grant;
  return undefined;
}

/**
 * Settles turns whose holder is dead or whose lease expired, those whose caller never brought the results of its calls, and
 * children whose parent was stopped hard by somebody who died before they were, each in one transaction that is conditional on the grant
 * that was judged; a turn that moved on meanwhile is left alone. Safe to run anywhere, at any time. Rejects with what
 * failed first, after every other turn was seen to.
 */
export async function reapTurns(deps: ReapDeps, sessionId?: string): Promise<readonly SettledTurn[]> {
  const settled: SettledTurn[] = [];
  const failures: unknown[] = [];
  for (const view of await deps.store.turns.running(sessionId)) {
    try {
      const result = await reapTurn(deps, view);
      if (result) settled.push(result);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return settled;
}

/** Takes a hard stop down to a child whose parent ended by it, where whoever stopped the parent did not come to it. */
async function stopLeftChild(deps: ReapDeps, turn: OpenTurn): Promise<SettledTurn | undefined> {
  if (turn.stop?.hard) return undefined;
  const { sessionId, fencingToken } = turn;
  const stop = await stopOfParent(deps.store, turn);
  const stopped = stop && (await requestStop(deps, sessionId, { ...stop, fencingToken }));
  return stopped?.kind === "stopped" ? stopped.settled : undefined;
}

async function reapTurn(deps: ReapDeps, { turn, lease, isOverdue }: OpenTurnView): Promise<SettledTurn | undefined> {
  if (isOverdue) return stopOverdue(deps, turn.sessionId);
  const left = await stopLeftChild(deps, turn);
  if (left) return left;
  if (!lease || lease.fencingToken !== turn.fencingToken) return undefined;
  const grant = await deadGrantOf(deps, lease);
  if (!grant) return undefined;
  const endProcesses = async (): Promise<void> => void (await deps.endProcesses?.(processMarkerOf(turn.turnId)));
  // Whoever is granted ends what a predecessor left, but nobody may come; and this process may die after the settlement.
  // One that expired may live, and is left in peace until it has lost the session (rule 7.14).
  const mayLive = lease.standing === "expired";
  let result: SettleForeignResult;
  try {
    if (!mayLive) await endProcesses();
  } finally {
    result = await deps.store.turns.settleForeign(grant);
  }
  if (result.kind !== "settled") return undefined;
  if (mayLive) await endProcesses();
  return result.turn;
}
