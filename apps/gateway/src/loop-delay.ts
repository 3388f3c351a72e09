import { monitorEventLoopDelay } from "node:perf_hooks";
import type { PeriodicHandle, PeriodicScheduler } from "@turnkeeper/periodic-scheduler";

const windowMs = 5000;

/** How long the event loop kept its callers waiting, lately: a process that answers a probe late answers everybody late. */
export class LoopDelay {
  readonly #histogram = monitorEventLoopDelay({ resolution: 20 });
  readonly #reading: PeriodicHandle;
  #longestMs = 0;

  constructor(scheduler: Pick<PeriodicScheduler, "schedule">) {
    this.#histogram.enable();
    this.#reading = scheduler.schedule(() => this.#read(), windowMs, { name: "loop-delay" });
  }

  /** The longest of the last five to ten seconds, in milliseconds. */
  get longestMs(): number {
    return Math.max(this.#longestMs, this.#ofWindow());
  }

  #ofWindow(): number {
    return this.#histogram.count > 0 ? this.#histogram.max / 1e6 : 0;
  }

  #read(): void {
    this.#longestMs = this.#ofWindow();
    this.#histogram.reset();
  }

  close(): void {
    this.#histogram.disable();
    void this.#reading.cancel();
  }
}
