import { CodedError, messageOf } from "@turnkeeper/kernel";
import type { TurnInterrupt } from "@turnkeeper/interrupt";
import type {
  ChildWait,
  EntryDraft,
  InterruptReason,
  JsonValue,
  StopRequest,
  TurnOutcome,
  Usage,
} from "@turnkeeper/state-store";

/** How the body wants the turn to end. */
export interface TurnEnding {
  readonly outcome: TurnOutcome;
  readonly reason?: string;
  readonly detail?: string;
  /** What stopped it. */
  readonly stop?: StopRequest;
  readonly usage?: Usage;
  readonly entries?: readonly EntryDraft[];
  /** The answer, for the call's last event; what is stored of it stands in `entries`. */
  readonly text?: string;
}

/** A call that somebody is to allow or deny; with `awaits` its caller is to run it, and send its result. */
export interface CallQuestion {
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  readonly awaits?: "result";
}

/** The body can go on only with answers: the turn is to be suspended until there are. */
export interface TurnPause {
  readonly outcome: "suspended";
  readonly asks: readonly CallQuestion[];
  /** The calls that wait for subagents that wait for answers. */
  readonly waits: readonly ChildWait[];
  /** What closes the open calls where a stop comes first. */
  readonly ifStopped: readonly EntryDraft[];
  readonly usage?: Usage;
  /** How long results of the caller's are waited for, in milliseconds. Default: ten minutes. */
  readonly resultWaitMs?: number;
}

/** The interrupt as an ending, in words for people. */
export function interruptedEnding(interrupt: TurnInterrupt): TurnEnding {
  const current = interrupt.current;
  const reason: InterruptReason = (current?.reason as InterruptReason | undefined) ?? "shutdown";
  const { hard = true, by, atMs = 0, message } = current ?? {};
  return {
    outcome: "interrupted",
    reason,
    ...(message === undefined ? {} : { detail: message }),
    ...(by === undefined ? {} : { stop: { hard, reason, by, atMs } }),
  };
}

/** An error as an ending: a stop is an interruption, everything else a failure with its code. */
export function endingOf(error: unknown, interrupt: TurnInterrupt): TurnEnding {
  if (CodedError.is(error, "LEASE_LOST"))
    return { outcome: "interrupted", reason: "lease-lost", detail: error.message };
  if (interrupt.current !== undefined && (CodedError.is(error, "INTERRUPTED") || interrupt.signal.aborted))
    return interruptedEnding(interrupt);
  if (CodedError.is(error)) return { outcome: "failed", reason: error.code, detail: error.message };
  return { outcome: "failed", reason: "INTERNAL", detail: messageOf(error) };
}

/**
 * Closes the turn to interrupts and takes its ending, in one synchronous step: a stop that was published counts, even
 * against an answer that was just complete; one that comes later finds the turn finished.
 */
export function settledEnding(interrupt: TurnInterrupt, wanted: TurnEnding | TurnPause): TurnEnding | TurnPause {
  const wasStopped = interrupt.current !== undefined;
  interrupt.finish();
  if (wanted.outcome === "suspended") {
    if (!wasStopped) return wanted;
    const { usage, ifStopped } = wanted;
    return { ...(usage ? { usage } : {}), ...interruptedEnding(interrupt), entries: ifStopped };
  }
  return wasStopped && wanted.outcome === "answered" ? { ...wanted, ...interruptedEnding(interrupt) } : wanted;
}
