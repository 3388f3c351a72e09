import type { Agent } from "@turnkeeper/agent-core";
import type { PeriodicHandle, PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { OpenCalls } from "./open-calls.ts";

/** How often it is looked for inputs that wait for nobody; one cheap read where there are none. */
const lookEveryMs = 5000;

export interface WaitingInputsDeps {
  readonly agent: Pick<Agent, "runWaiting">;
  readonly calls: Pick<OpenCalls, "room">;
  readonly scheduler: Pick<PeriodicScheduler, "schedule">;
  /** Told of a look that failed; it is made again. */
  onError(error: unknown): void;
}

export interface WaitingInputsLimits {
  readonly waitingSessionCount: number;
}

/**
 * Has what waits for nobody run here: inputs in the queue, and those of dead processes. A few sessions at once, the next
 * as soon as one is through, and none while calls have taken all the room.
 */
export class WaitingInputs {
  readonly #deps: WaitingInputsDeps;
  readonly #sessionCount: number;
  readonly #periodic: PeriodicHandle;
  #looking: Promise<void> | undefined;
  #mustLookAgain = false;
  #isClosed = false;

  constructor(deps: WaitingInputsDeps, { waitingSessionCount }: WaitingInputsLimits) {
    this.#deps = deps;
    this.#sessionCount = waitingSessionCount;
    this.#periodic = deps.scheduler.schedule(() => this.look(), lookEveryMs, { name: "waiting-inputs" });
  }

  /** One look at a time; whoever asks during one has another behind it. Never rejects. */
  look(): Promise<void> {
    if (this.#looking) this.#mustLookAgain = true;
    return (this.#looking ??= this.#look());
  }

  async #look(): Promise<void> {
    do {
      this.#mustLookAgain = false;
      await this.#lookOnce();
    } while (this.#mustLookAgain);
    this.#looking = undefined;
  }

  async #lookOnce(): Promise<void> {
    const sessionCount = Math.min(this.#sessionCount, this.#deps.calls.room);
    if (sessionCount < 1 || this.#isClosed) return;
    try {
      await this.#deps.agent.runWaiting({ sessionCount, onRoom: () => void this.look() });
    } catch (error) {
      this.#deps.onError(error);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#periodic.cancel({ waitMs: 1000 });
  }
}
