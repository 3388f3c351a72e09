import type { CommandIo } from "./command-io.ts";
import { exitCode } from "./exit-code.ts";

/** What each press of Ctrl-C does; the next one is always stronger. */
export interface StopSteps {
  /** First: end soon and cleanly. */
  soft(): void;
  /** Second: end now. */
  hard(): void;
  /** Ends what runs and lets go of everything: the terminal went away, or a supervisor wants the process gone. */
  shutdown(): void;
}

/** The answer to SIGINT, SIGTERM and SIGHUP while a command has something to stop. */
export class StopLadder {
  readonly #io: Pick<CommandIo, "onSignal" | "exitNow">;
  readonly #steps: StopSteps;
  readonly #undo: (() => void)[];
  #pressCount = 0;
  #hasShutDown = false;

  constructor(io: Pick<CommandIo, "onSignal" | "exitNow">, steps: StopSteps) {
    this.#io = io;
    this.#steps = steps;
    const shutdown = (): void => this.shutDown();
    this.#undo = [
      io.onSignal("SIGINT", () => this.press()),
      io.onSignal("SIGTERM", shutdown),
      io.onSignal("SIGHUP", shutdown),
    ];
  }

  /** Whether anybody asked this command to stop. */
  get wasPressed(): boolean {
    return this.#pressCount > 0 || this.#hasShutDown;
  }

  /** One press of Ctrl-C; a terminal in raw mode sends it as a key, not as a signal. */
  press(): void {
    this.#pressCount++;
    if (this.#pressCount === 1) this.#steps.soft();
    else if (this.#pressCount === 2) this.#steps.hard();
    else this.#io.exitNow(exitCode.interrupted);
  }

  /** A new turn begins: the next press is a first one again. */
  reset(): void {
    this.#pressCount = 0;
  }

  /**
   * Shuts down, once. A terminal that goes away is often met by a read or a write before its signal comes, and no signal
   * comes where it does not control this process: whoever meets it calls this.
   */
  shutDown(): void {
    if (this.#hasShutDown) return;
    this.#hasShutDown = true;
    this.#steps.shutdown();
  }

  /** Gives the signals back to the system. */
  dispose(): void {
    for (const undo of this.#undo) undo();
  }
}
