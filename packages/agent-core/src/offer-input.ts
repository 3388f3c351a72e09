import type { Host } from "@turnkeeper/kernel";
import type { OfferRequest, OfferResult, OnBusy } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import type { StateStore } from "@turnkeeper/state-store";
import { deadGrantOf } from "./reaper.ts";
import { withKnownOutcome } from "./unknown-outcome.ts";

export interface OfferDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly presence: ProcessPresence;
  /** Aborts when the agent is closed: nothing is taken over any more. */
  readonly closing: AbortSignal;
}

/** Whether a call is over once others are known to run its input. */
export function leavesWhenBusy(onBusy: OnBusy): boolean {
  return onBusy === "queue" || onBusy === "steer" || onBusy === "reject";
}

/** Whether the caller would leave, or be refused, because somebody has the session. */
function isLeft(offer: OfferResult, { onBusy, runner }: OfferRequest): boolean {
  if (offer.kind === "accepted") return offer.input.runner === undefined;
  if (offer.kind !== "known") return offer.kind === "busy";
  // Accepted by an offer whose answer was lost: it is the caller's own to run.
  const isOwn = offer.input.state === "pending" && offer.input.runner?.runnerId === runner.runnerId;
  return leavesWhenBusy(onBusy) && !isOwn;
}

/** Makes orphans of what dead processes were to run, up to the first waiter that may live. Whether there was any. */
export async function passOverTheDead(
  { store, presence, host }: Pick<OfferDeps, "store" | "presence" | "host">,
  sessionId: string,
): Promise<boolean> {
  let orphanCount = 0;
  for (const { runner } of await store.inbox.pending(sessionId)) {
    if (!runner) continue;
    const fate = await presence.probe(runner, runner.runnerId);
    if (fate !== "dead" && fate !== "unknown-here") break;
    orphanCount += await withKnownOutcome(host, () => store.inbox.abandon(sessionId, runner.runnerId));
  }
  return orphanCount > 0;
}

/**
 * Stores an input. A session is not busy because a dead process still has its name on it, as its holder or in its
 * queue: nobody is refused for that, and nobody leaves a message to it.
 */
export async function offerInput(deps: OfferDeps, request: OfferRequest): Promise<OfferResult> {
  const { host, store, closing } = deps;
  const offer = await withKnownOutcome(host, () => store.inbox.offer(request));
  if (offer.kind === "conflict" || offer.kind === "full" || !isLeft(offer, request)) return offer;
  const deadGrant = offer.lease && (await deadGrantOf(deps, offer.lease));
  if (offer.lease && !deadGrant) return offer;
  const mayBeFree = (await passOverTheDead(deps, request.sessionId)) || deadGrant !== undefined;
  if (!mayBeFree || closing.aborted) return offer;
  return withKnownOutcome(host, () => store.inbox.offer({ ...request, ...(deadGrant ? { deadGrant } : {}) }));
}
