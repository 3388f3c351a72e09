import { CodedError } from "@turnkeeper/kernel";
import type { AbortClaim } from "./abort-claim.ts";
import type { InterruptErrorCode } from "./errors.ts";

export interface InterruptRequest {
  /** Soft: end soon and cleanly, children and steers untouched. Hard: end now, children too. */
  readonly hard: boolean;
  /** Why, as a slug for programs: `user-stop`, `stalled`, `lease-lost`. */
  readonly reason: string;
  /** Who asked, for people: `cli pid 4711`, `watchdog`. */
  readonly by?: string;
  /** One line for people. */
  readonly message?: string;
  /** Makes the stop conditional: published only if the claim can still be consumed. Absent: nothing can veto it. */
  readonly claim?: AbortClaim;
}

/** What stopped a turn. */
export interface InterruptRecord {
  readonly hard: boolean;
  readonly reason: string;
  readonly by?: string;
  readonly message?: string;
  /** Wall time, for people. */
  readonly atMs: number;
  /** It came down from the parent turn; `reason` and `by` are the parent's. */
  readonly fromParent: boolean;
  /** The soft stop that this one hardened, where another had come first. */
  readonly earlier?: InterruptRecord;
}

/**
 * How a request to stop came out. `published`: the turn is stopped by it. `vetoed`: the claim was void, nothing happened.
 * `already-interrupted`: at least as hard a stop had come first. `already-finished`: the turn had ended.
 */
export type InterruptOutcome = "published" | "vetoed" | "already-interrupted" | "already-finished";

/** Where a stop comes from and what it follows. */
export interface InterruptOrigin {
  readonly fromParent: boolean;
  readonly earlier: InterruptRecord | undefined;
}

export function recordOf(request: InterruptRequest, origin: InterruptOrigin, atMs: number): InterruptRecord {
  const { fromParent, earlier } = origin;
  const { hard, reason, by, message } = request;
  return Object.freeze({
    hard,
    reason,
    ...(by === undefined ? {} : { by }),
    ...(message === undefined ? {} : { message }),
    atMs,
    fromParent,
    ...(earlier === undefined ? {} : { earlier }),
  });
}

/** The record as the reason of a signal. It says who and why in the words it was given, and claims no user behind it. */
export function interruptedError(record: InterruptRecord): CodedError<InterruptErrorCode> {
  const { hard, reason, by, message } = record;
  const what = `This turn was stopped (${hard ? "hard" : "soft"}, ${reason}${by === undefined ? "" : `, by ${by}`}).`;
  const context = { hard, reason, ...(by === undefined ? {} : { by }) };
  return new CodedError("INTERRUPTED", message === undefined ? what : `${what} ${message}`, { context });
}
