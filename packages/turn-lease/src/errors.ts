import { CodedError } from "@turnkeeper/kernel";
import type { Grant, Holder } from "@turnkeeper/state-store";

/** What this package throws. A refusal is a value, not an error. */
export type TurnLeaseErrorCode =
  /** The lease is not held any more: stop every side effect, write nothing. The reason of `TurnLease.lost`. */
  | "LEASE_LOST"
  /** An option is unknown or out of range; the message names it, what was expected and what came. */
  | "OPTION_INVALID";

/**
 * Why a lease was lost: `replaced`, its row names another grant or none; `unconfirmed`, the store could not be asked in
 * time; `withheld`, the turn showed no progress that would allow a renewal; `released`, its owner gave it back.
 */
export type LossCause = "replaced" | "unconfirmed" | "withheld" | "released";

export interface LossFacts {
  readonly cause: LossCause;
  /** Who holds the session now, where that is known. */
  readonly holder?: Holder;
  /** What the last attempt to renew failed with. */
  readonly failure?: unknown;
}

function explain({ cause, holder, failure }: LossFacts): string {
  switch (cause) {
    case "replaced":
      if (!holder) return "somebody else settled its turn and freed the session";
      return `it now belongs to process ${holder.pid} on ${holder.host}`;
    case "unconfirmed":
      if (failure === undefined) return "the store did not answer in time to renew it";
      return `it could not be renewed in time (${failure instanceof Error ? failure.message : "the store rejected with no error"})`;
    case "withheld":
      return "it was not renewed, since the turn shows no progress";
    case "released":
      return "its owner has released it";
    default:
      return cause satisfies never;
  }
}

export function leaseLost(grant: Grant, facts: LossFacts): CodedError<"LEASE_LOST"> {
  const { sessionId, fencingToken } = grant;
  const message = `The lease of session ${sessionId} (fencing token ${fencingToken}) is gone: ${explain(facts)}. Stop the turn; its writes are refused.`;
  const context = { sessionId, fencingToken, cause: facts.cause, ...(facts.holder ? { holder: facts.holder } : {}) };
  return new CodedError("LEASE_LOST", message, { cause: facts.failure, context });
}
