import { CodedError } from "@turnkeeper/kernel";
import type { HandOver, InboxStore, PendingInput, StoreErrorCode } from "@turnkeeper/state-store";
import type { ProcessPresence } from "./presence.ts";

export interface HandOverDeps {
  readonly presence: Pick<ProcessPresence, "wake">;
  /** Where waiters queue. Absent: a dead one is passed over when its claim period ends. */
  readonly inbox?: Pick<InboxStore, "abandon" | "pending"> | undefined;
}

/**
 * Tells the head of the queue that it is its turn. `gone`: its runner has provably ended, or is unknown in its living
 * process, and its inputs are orphans now. Otherwise it is on its way, or its claim period passes it over.
 */
export async function wakeHead(deps: HandOverDeps, sessionId: string, head: PendingInput): Promise<"told" | "gone"> {
  const { presence, inbox } = deps;
  const { runner } = head;
  if (!runner) return "told";
  const heard = await presence.wake(runner, sessionId, runner.runnerId);
  if (!inbox || (heard !== "dead" && heard !== "unknown-here")) return "told";
  return (await isMadeOrphans(inbox, sessionId, runner.runnerId)) ? "gone" : "told";
}

/**
 * Passing over the dead is a service to the queue: nobody's own request fails for it. Where the store does not answer,
 * the claim period passes the head over, and what is asked of the store next tells whether it is broken.
 */
async function isMadeOrphans(
  inbox: Pick<InboxStore, "abandon">,
  sessionId: string,
  runnerId: string,
): Promise<boolean> {
  try {
    return (await inbox.abandon(sessionId, runnerId)) > 0;
  } catch (error) {
    if (CodedError.is<StoreErrorCode>(error, "STORE_IO") || CodedError.is<StoreErrorCode>(error, "STORE_BUSY"))
      return false;
    throw error;
  }
}

/**
 * Passes a freed session on: wakes its queue from the head until one waiter was told. Without a `head` in the answer
 * only orphans are pending, and whoever freed the session competes for it again. Never rejects: the session is free
 * already, and what goes wrong here the waiters' own looks make good.
 */
export async function passOn(deps: HandOverDeps, sessionId: string, left: HandOver): Promise<HandOver> {
  let { pendingCount, head } = left;
  try {
    while (head && (await wakeHead(deps, sessionId, head)) === "gone") {
      const queue: readonly PendingInput[] = (await deps.inbox?.pending(sessionId)) ?? [];
      pendingCount = queue.filter(({ child }) => child === undefined).length;
      head = queue.find((input) => input.runner !== undefined);
    }
  } catch {
    return { pendingCount, ...(head ? { head } : {}) };
  }
  return { pendingCount, ...(head ? { head } : {}) };
}
