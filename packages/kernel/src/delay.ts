import { CodedError } from "./coded-error.ts";

/** The longest delay one Node timer can carry; a longer one fires at once. */
export const longestTimerMs: number = 2 ** 31 - 1;

/** Returns `ms` when a timer may carry it; throws `TIMER_INVALID` for NaN, an infinity or a negative value. */
export function checkedDelayMs(ms: number): number {
  if (Number.isFinite(ms) && ms >= 0) return ms;
  throw new CodedError("TIMER_INVALID", `A timer needs a finite delay of at least 0 ms, got ${ms}.`, {
    context: { ms: String(ms) },
  });
}
