import type { Cancel } from "@turnkeeper/kernel";
import { backOffMs } from "./back-off.ts";
import type { PageHost } from "./page-host.ts";

export interface PollOptions {
  /** Between the end of one look and the next. */
  readonly everyMs: () => number;
  /** Looks; answers whether the gateway did. Never rejects. */
  readonly look: (signal: AbortSignal) => Promise<boolean>;
  /** The gateway does not answer; it is asked again after so long. */
  readonly missed?: (retryInMs: number) => void;
}

/**
 * Looks again and again, one look at a time: at most a sixth of the time is spent looking, less often while nobody
 * answers, and not at all while nobody watches.
 */
export class Poll {
  readonly #host: PageHost;
  readonly #options: PollOptions;
  readonly #controller = new AbortController();
  #cancelNext: Cancel = () => {};
  #isLooking = false;
  #isWantedSoon = false;
  #isPaused = false;
  #missedCount = 0;

  constructor(host: PageHost, options: PollOptions) {
    this.#host = host;
    this.#options = options;
    this.now();
  }

  /** Looks at once, or once more after the look that is under way. */
  now(): void {
    if (this.#controller.signal.aborted || this.#isPaused) return;
    if (this.#isLooking) this.#isWantedSoon = true;
    else void this.#look();
  }

  pause(): void {
    this.#isPaused = true;
    this.#cancelNext();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.now();
  }

  close(): void {
    this.#cancelNext();
    this.#controller.abort();
  }

  async #look(): Promise<void> {
    this.#cancelNext();
    this.#isLooking = true;
    this.#isWantedSoon = false;
    const startedAtMs = this.#host.clock.monotonicMs();
    const hasAnswered = await this.#options.look(this.#controller.signal);
    this.#isLooking = false;
    if (this.#controller.signal.aborted || this.#isPaused) return;
    if (hasAnswered) {
      this.#missedCount = 0;
      const tookMs = this.#host.clock.monotonicMs() - startedAtMs;
      this.#later(this.#isWantedSoon ? 0 : Math.max(this.#options.everyMs(), 5 * tookMs));
    } else {
      const retryInMs = backOffMs(this.#missedCount++, this.#host.random.unit());
      this.#options.missed?.(retryInMs);
      this.#later(retryInMs);
    }
  }

  #later(ms: number): void {
    this.#cancelNext = this.#host.timers.after(ms, () => this.now());
  }
}
