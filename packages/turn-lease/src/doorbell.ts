import type { Timers } from "@turnkeeper/kernel";

/** What a waiter sleeps on. A ring while nobody waits is kept for the next wait: none falls between look and sleep. */
export class Doorbell {
  readonly #timers: Timers;
  #hasRung = false;
  #answer: (() => void) | undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  readonly ring = (): void => {
    this.#hasRung = true;
    this.#answer?.();
  };

  /** What `act` rings at once is no news to the waiter. */
  deafTo<Result>(act: () => Result): Result {
    const hadRung = this.#hasRung;
    const result = act();
    this.#hasRung = hadRung;
    return result;
  }

  /** Resolves `true` at a ring, `false` after `ms` milliseconds. One waiter at a time. */
  async wait(ms: number): Promise<boolean> {
    if (!this.#hasRung) {
      await new Promise<void>((resolve) => {
        const cancel = this.#timers.after(ms, resolve);
        this.#answer = () => {
          cancel();
          resolve();
        };
      });
      this.#answer = undefined;
    }
    const hasRung = this.#hasRung;
    this.#hasRung = false;
    return hasRung;
  }
}
