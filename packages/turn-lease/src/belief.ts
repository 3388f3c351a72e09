import type { Clock } from "@turnkeeper/kernel";

/** A reading of the holder's own clocks, taken before a request was sent. */
export interface Instant {
  readonly bootMs: number;
  readonly monotonicMs: number;
}

export function instantOf(clock: Clock): Instant {
  return { bootMs: clock.bootMs(), monotonicMs: clock.monotonicMs() };
}

/** What a holder believes at one moment. */
export interface BeliefView {
  /** Since before the last successful request was sent. */
  readonly ageMs: number;
  /** Until belief ends; at 0 and below it has. */
  readonly endsInMs: number;
  /** Whether the machine has slept since: then time has passed that no timer of this process has seen. */
  readonly hasSlept: boolean;
}

/** How far boot time may run ahead of monotonic time before the machine is said to have slept; both tick coarsely. */
const sleepToleranceMs = 250;

/**
 * How long a holder may believe in its grant, on its own boot clock. The time counts from before the request was sent
 * that the store granted or renewed by: whatever the answer took, belief ends before the store would grant anew.
 */
export class Belief {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #marginMs: number;
  #confirmed: Instant;

  constructor(clock: Clock, ttlMs: number, marginMs: number, confirmed: Instant) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#marginMs = marginMs;
    this.#confirmed = confirmed;
  }

  /** The store renewed by a request sent at this instant. One that was overtaken by a later one changes nothing. */
  confirm(sent: Instant): void {
    if (sent.bootMs > this.#confirmed.bootMs) this.#confirmed = sent;
  }

  /** Reads the clocks once; the boot clock costs three system calls. */
  look(): BeliefView {
    const ageMs = this.#clock.bootMs() - this.#confirmed.bootMs;
    const hasSlept = ageMs - this.#awakeMs > sleepToleranceMs;
    return { ageMs, endsInMs: this.#ttlMs - this.#marginMs - ageMs, hasSlept };
  }

  /** When a timer has to look again. Timers do not count sleep, so neither does this. */
  get timerMs(): number {
    return Math.max(0, this.#ttlMs - this.#marginMs - this.#awakeMs);
  }

  get #awakeMs(): number {
    return this.#clock.monotonicMs() - this.#confirmed.monotonicMs;
  }
}
