import type { TurnInterrupt } from "@turnkeeper/interrupt";
import type { Turn } from "../turn-call.ts";

interface RunningChild {
  readonly child: Turn;
  /** The turn that waits for it; none once that is over. */
  parent: { readonly leave: () => void; readonly forget: () => void } | undefined;
}

/** Made apart from the turn, which a child that goes on must not hold. */
const forgetting =
  (running: RunningChild): (() => void) =>
  () =>
    running.parent?.forget();

/** The children that one turn waits for, under that turn's stops: a hard one takes them along, a soft one leaves them. */
export class RunningChildren {
  readonly #interrupt: TurnInterrupt;
  /** Who stops them, for people. */
  readonly #by: string;
  readonly #running = new Set<RunningChild>();

  constructor(interrupt: TurnInterrupt, by: string) {
    this.#interrupt = interrupt;
    this.#by = by;
  }

  /** A hard stop goes down to the child as long as it runs; a soft one only where it had come before the child. */
  attach(child: Turn, leave: () => void): void {
    const { signal, hardSignal } = this.#interrupt;
    if (hardSignal.aborted) return child.stop({ hard: true, reason: "parent", by: this.#by });
    if (signal.aborted) child.stop({ reason: "parent", by: this.#by });
    // One listener for all of them: a signal with many is taken for a leak.
    if (this.#running.size === 0) {
      signal.addEventListener("abort", this.#leave);
      hardSignal.addEventListener("abort", this.#stopHard);
    }
    const running: RunningChild = { child, parent: undefined };
    running.parent = { leave, forget: () => this.#forget(running) };
    this.#running.add(running);
    void child.result.then(forgetting(running));
  }

  /** Nothing of the turn hears of its children any more. */
  letGo(): void {
    for (const running of this.#running) running.parent = undefined;
    this.#running.clear();
    this.#unlisten();
  }

  #forget(running: RunningChild): void {
    this.#running.delete(running);
    if (this.#running.size === 0) this.#unlisten();
  }

  #unlisten(): void {
    const { signal, hardSignal } = this.#interrupt;
    signal.removeEventListener("abort", this.#leave);
    hardSignal.removeEventListener("abort", this.#stopHard);
  }

  readonly #leave = (): void => {
    // A hard stop takes the children along: their ends are near, and are waited for as long as their calls are.
    if (this.#interrupt.current?.hard) return;
    for (const { parent } of this.#running) parent?.leave();
  };

  readonly #stopHard = (): void => {
    for (const { child } of this.#running) child.stop({ hard: true, reason: "parent", by: this.#by });
  };
}
