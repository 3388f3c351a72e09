import { setMaxListeners } from "node:events";
import type { Host } from "@turnkeeper/kernel";

/** What a wait that is over was ended by. */
export interface WaitReasons {
  readonly timeout: () => Error;
  readonly interrupt: () => Error;
}

/** A limit of time that may be pushed back, and a signal: whichever comes first aborts `signal` with its reason. */
export class BoundedWait {
  readonly #host: Host;
  readonly #timeoutMs: number;
  readonly #controller = new AbortController();
  readonly #timeoutReason: () => Error;
  readonly #disposeListener: () => void;
  #cancelTimer: () => void;

  constructor(host: Host, timeoutMs: number, reasons: WaitReasons, interrupt?: AbortSignal) {
    this.#host = host;
    this.#timeoutMs = timeoutMs;
    this.#timeoutReason = reasons.timeout;
    // The SDK leaves a listener for each request; the signal goes with the wait, and they with it.
    setMaxListeners(0, this.#controller.signal);
    const onInterrupt = (): void => this.#controller.abort(reasons.interrupt());
    interrupt?.addEventListener("abort", onInterrupt);
    this.#disposeListener = () => interrupt?.removeEventListener("abort", onInterrupt);
    this.#cancelTimer = this.#arm();
    if (interrupt?.aborted === true) onInterrupt();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Something moved: the time begins anew. */
  pushBack(): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#arm();
  }

  /** The promise's outcome, or the reason for which it is waited for no longer. */
  async of<Value>(promise: Promise<Value>): Promise<Value> {
    const { signal } = this;
    let disposeListener = (): void => {};
    const over = new Promise<never>((_resolve, reject) => {
      const onOver = (): void => reject(signal.reason as Error);
      signal.addEventListener("abort", onOver);
      disposeListener = () => signal.removeEventListener("abort", onOver);
      if (signal.aborted) onOver();
    });
    try {
      return await Promise.race([over, promise]);
    } finally {
      disposeListener();
    }
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
    this.#disposeListener();
  }

  #arm(): () => void {
    return this.#host.timers.after(this.#timeoutMs, () => this.#controller.abort(this.#timeoutReason()));
  }
}
