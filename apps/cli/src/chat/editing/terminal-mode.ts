import type { Cancel, Host } from "@turnkeeper/kernel";
import type { CommandIo } from "../../command-io.ts";

const pasteMarksOn = "\u001b[?2004h";
const pasteMarksOff = "\u001b[?2004l";
/** A stop that nobody can undo is ignored by the system: then the process simply goes on. */
const ignoredAfterMs = 200;

/**
 * The terminal as the editor needs it: keys as they come, pastes marked. It is given back whenever somebody else may
 * use it: at the end of the process, however it ends, and while the process is stopped.
 */
export class TerminalMode {
  readonly #io: CommandIo;
  readonly #host: Host;
  readonly #onBack: () => void;
  readonly #undo: readonly (() => void)[];
  #isOurs = false;
  #isClosed = false;
  #cancelWait: Cancel | undefined;

  /** `onBack`: the process was stopped and goes on; what stands on the terminal is not ours. */
  constructor(io: CommandIo, host: Host, onBack: () => void) {
    this.#io = io;
    this.#host = host;
    this.#onBack = onBack;
    this.#undo = [io.onSignal("SIGCONT", () => this.#comeBack()), io.onExit(() => this.#giveBack())];
    this.#take();
  }

  /** Stops the process; the shell has the terminal meanwhile. */
  suspend(): void {
    this.#giveBack();
    this.#cancelWait = this.#host.timers.after(ignoredAfterMs, () => this.#comeBack(), { keepAlive: false });
    this.#io.suspend();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const undo of this.#undo) undo();
    this.#cancelWait?.();
    this.#giveBack();
  }

  #comeBack(): void {
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    // Stopped from outside, nothing was given back, and the shell has set its own mode since: Node would think that
    // nothing has changed.
    if (this.#isOurs) this.#io.stdin.setRawMode(false);
    this.#take();
    this.#onBack();
  }

  #take(): void {
    this.#isOurs = true;
    this.#io.stdin.setRawMode(true);
    this.#io.stdout.write(pasteMarksOn);
  }

  #giveBack(): void {
    if (!this.#isOurs) return;
    this.#isOurs = false;
    this.#io.stdout.write(pasteMarksOff);
    if (!this.#io.stdin.destroyed) this.#io.stdin.setRawMode(false);
  }
}
