import type { Agent } from "@turnkeeper/agent-core";
import type { PeriodicHandle, PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { OpenCalls } from "./open-calls.ts";

/** How often it is looked for inputs that wait for nobody; one cheap read where there are none. */
const lookEveryMs = 5000;
/** At once, so that what a dead process left does not come all together. */
const sessionCountMax = 20;

export interface WaitingInputsDeps {
  readonly agent: Pick<Agent, "runWaiting">;
  readonly calls: Pick<OpenCalls, "room">;
  readonly scheduler: Pick<PeriodicScheduler, "schedule">;
  /** Told of a look that failed; it is made again. */
  onError(error: unknown): void;
}

/** Has what waits for nobody run here, as far as there is room: inputs in the queue, and those of dead processes. */
export class WaitingInputs {
  readonly #deps: WaitingInputsDeps;
  readonly #looking: PeriodicHandle;

  constructor(deps: WaitingInputsDeps) {
    this.#deps = deps;
    this.#looking = deps.scheduler.schedule(() => this.look(), lookEveryMs, { name: "waiting-inputs" });
  }

  /** Never rejects. */
  async look(): Promise<void> {
    const sessionCount = Math.min(sessionCountMax, this.#deps.calls.room);
    if (sessionCount < 1) return;
    try {
      await this.#deps.agent.runWaiting({ sessionCount });
    } catch (error) {
      this.#deps.onError(error);
    }
  }

  async close(): Promise<void> {
    await this.#looking.cancel({ waitMs: 1000 });
  }
}
