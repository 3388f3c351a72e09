import { CodedError } from "@turnkeeper/kernel";
import type { InterruptErrorCode } from "./errors.ts";

export interface TurnInterruptOptions {
  /**
   * How long a hard stop may wait for a commit in flight, in milliseconds; finite, at least 0. Default 2,000: far longer
   * than any healthy commit (one transaction), short enough for a person who has asked twice.
   */
  readonly commitWaitMs?: number;
}

export type ResolvedTurnInterruptOptions = Readonly<Required<TurnInterruptOptions>>;

export const turnInterruptDefaults: ResolvedTurnInterruptOptions = Object.freeze({ commitWaitMs: 2000 });

function invalid(option: string, expectation: string, value: unknown): CodedError<InterruptErrorCode> {
  const message = `createTurnInterrupt: option ${option} must be ${expectation}, got ${String(value)}.`;
  return new CodedError("OPTION_INVALID", message, { context: { option } });
}

export function resolveTurnInterruptOptions(options: TurnInterruptOptions): ResolvedTurnInterruptOptions {
  for (const [key, value] of Object.entries(options)) {
    if (!(key in turnInterruptDefaults)) throw invalid(key, "absent (there is no such option)", value);
  }
  const { commitWaitMs = turnInterruptDefaults.commitWaitMs } = options;
  if (!Number.isFinite(commitWaitMs) || commitWaitMs < 0) {
    throw invalid("commitWaitMs", "a finite number of milliseconds, at least 0", commitWaitMs);
  }
  return Object.freeze({ commitWaitMs });
}
