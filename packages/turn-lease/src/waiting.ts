import type { Clock } from "@turnkeeper/kernel";
import type { Holder, Runner, SuspendedTurn } from "@turnkeeper/state-store";
import type { WaitingView } from "./options.ts";

/** Between the first two notices; each gap is twice the last. */
const firstGapMs = 5_000;
/** No longer than this between two notices, so a waiter never looks forgotten. */
const longestGapMs = 60_000;

/**
 * How long a waiter has been refused, and when it says so. Only refusals count: while the store is busy nobody has
 * said no, and nobody is to be named.
 */
export class Waiting {
  readonly #clock: Clock;
  readonly #onWaiting: ((view: WaitingView) => void) | undefined;
  #countedMs = 0;
  #countingSinceMs: number | undefined;
  #nextNoticeMs = 0;
  #gapMs = firstGapMs;
  holder: Holder | Runner | undefined;
  #suspended: SuspendedTurn | undefined;

  constructor(clock: Clock, onWaiting: ((view: WaitingView) => void) | undefined) {
    this.#clock = clock;
    this.#onWaiting = onWaiting;
  }

  get elapsedMs(): number {
    if (this.#countingSinceMs === undefined) return this.#countedMs;
    return this.#countedMs + (this.#clock.monotonicMs() - this.#countingSinceMs);
  }

  /** Somebody else has the session, or its turn waits for approval. */
  refused(holder: Holder | Runner | undefined, suspended?: SuspendedTurn): void {
    this.#countingSinceMs ??= this.#clock.monotonicMs();
    this.holder = holder;
    this.#suspended = suspended;
  }

  /** Nobody has answered: this time does not count. */
  unanswered(): void {
    this.#countedMs = this.elapsedMs;
    this.#countingSinceMs = undefined;
  }

  /** Says that it waits, where a notice is due. A notice that throws is reported and changes nothing. */
  speak(): void {
    const { elapsedMs, holder } = this;
    const suspended = this.#suspended;
    if (!this.#onWaiting || elapsedMs < this.#nextNoticeMs) return;
    this.#nextNoticeMs = elapsedMs + this.#gapMs;
    this.#gapMs = Math.min(this.#gapMs * 2, longestGapMs);
    try {
      this.#onWaiting({ elapsedMs, ...(holder ? { holder } : {}), ...(suspended ? { suspended } : {}) });
    } catch (error) {
      process.emitWarning("onWaiting of acquireTurnLease threw.", {
        code: "WAITING_NOTICE_FAILED",
        detail: String(error),
      });
    }
  }
}
