import { CodedError } from "@turnkeeper/kernel";
import type { PeriodicSchedulerErrorCode } from "./errors.ts";

export interface PeriodicSchedulerOptions {
  /**
   * Due times are rounded up to slots of this many milliseconds, so tasks share wake-ups: at most `1000 / slackMs` a
   * second however many tasks there are, and half as many where all have intervals of 20 slots or more, which use each
   * second slot. 0 runs each at its own moment. Default 50.
   */
  readonly slackMs?: number;
}

export type ResolvedPeriodicSchedulerOptions = Readonly<Required<PeriodicSchedulerOptions>>;

export const periodicSchedulerDefaults: ResolvedPeriodicSchedulerOptions = Object.freeze({
  // The cost of a timer is its wake-up. Slots of 50 ms take a third of the CPU of exact timers at 1,000 tasks, and
  // are nothing beside the seconds between two renewals or two looks of a watchdog.
  slackMs: 50,
});

export function invalidOption(
  option: string,
  expectation: string,
  value: unknown,
): CodedError<PeriodicSchedulerErrorCode> {
  return new CodedError("OPTION_INVALID", `Option ${option} must be ${expectation}, got ${String(value)}.`, {
    context: { option },
  });
}

export function resolvePeriodicSchedulerOptions(options: PeriodicSchedulerOptions): ResolvedPeriodicSchedulerOptions {
  for (const key of Object.keys(options)) {
    if (!(key in periodicSchedulerDefaults)) throw invalidOption(key, "absent (there is no such option)", key);
  }
  const { slackMs = periodicSchedulerDefaults.slackMs } = options;
  if (!Number.isFinite(slackMs) || slackMs < 0)
    throw invalidOption("slackMs", "a finite number of milliseconds of at least 0", slackMs);
  return Object.freeze({ slackMs });
}
