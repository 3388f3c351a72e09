import type { Timers } from "@turnkeeper/kernel";

/** Waits of bounded length that can all be ended at once, so whoever stops leaves no timer behind. */
export class Pauses {
  readonly #timers: Timers;
  readonly #ends = new Set<() => void>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Resolves after `ms` milliseconds, or when all pauses end. */
  pause(ms: number): Promise<void> {
    return this.until(undefined, ms);
  }

  /** Resolves when `work` has settled either way, after `ms` milliseconds, or when all pauses end. */
  until(work: Promise<unknown> | undefined, ms: number): Promise<void> {
    return this.#bounded(work, (fn) => this.#timers.after(ms, fn, { keepAlive: false }));
  }

  /** Resolves when I/O that was already waiting has been delivered, or when all pauses end. */
  afterPoll(): Promise<void> {
    return this.#bounded(undefined, (fn) => this.#timers.afterPoll(fn));
  }

  endAll(): void {
    for (const end of this.#ends) end();
  }

  #bounded(work: Promise<unknown> | undefined, arm: (fn: () => void) => () => void): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        disarm();
        this.#ends.delete(end);
        resolve();
      };
      const disarm = arm(end);
      this.#ends.add(end);
      work?.then(end, end);
    });
  }
}
