import type { Clock } from "@turnkeeper/kernel";

/** A stretch in which this process could not run, as far as two looks can tell. */
export interface SamplingGap {
  /** How much later than planned the look came, on the monotonic clock: time that must not count as silence. */
  readonly lateMs: number;
}

export interface SamplingGaps {
  /** Notes the end of a look; the next one is planned `inMs` from now. */
  plan(inMs: number): void;
  /** The gap before this look, if there was one. */
  find(): SamplingGap | undefined;
}

/**
 * How late a look may be before it counts as a gap: a whole poll, but at least 100 ms (the scheduler's slots and an
 * ordinary busy loop) and at most a second.
 */
function toleranceMs(pollMs: number): number {
  return Math.min(1000, Math.max(100, pollMs));
}

/**
 * Finds blocked loops and stopped processes (the monotonic clock ran on, the look came late) and suspends of the machine
 * (the boot clock ran ahead of the monotonic one, which on Linux stands still then).
 */
export function createSamplingGaps(clock: Clock, pollMs: number): SamplingGaps {
  const tolerated = toleranceMs(pollMs);
  let monotonicMs = 0;
  let bootMs = 0;
  let plannedMs = 0;
  const plan = (inMs: number): void => {
    monotonicMs = clock.monotonicMs();
    bootMs = clock.bootMs();
    plannedMs = inMs;
  };
  plan(pollMs);
  return {
    plan,
    find: () => {
      const passedMs = clock.monotonicMs() - monotonicMs;
      const lateMs = passedMs - plannedMs;
      const sleptMs = clock.bootMs() - bootMs - passedMs;
      return lateMs > tolerated || sleptMs > tolerated ? { lateMs: Math.max(0, lateMs) } : undefined;
    },
  };
}
