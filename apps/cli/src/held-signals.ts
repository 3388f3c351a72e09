const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

type HeldSignal = (typeof signals)[number];

/**
 * Signals that come while the program is being loaded, before anybody can answer them. Without it the system would end
 * the process, and a call to `run` without its last event.
 */
export class HeldSignals {
  readonly #process: NodeJS.Process;
  readonly #arrived: HeldSignal[] = [];
  readonly #holders = new Map<NodeJS.Signals, () => void>();

  constructor(process: NodeJS.Process) {
    this.#process = process;
    for (const signal of signals) {
      const hold = (): void => void this.#arrived.push(signal);
      this.#holders.set(signal, hold);
      process.on(signal, hold);
    }
  }

  /** Leaves the signal to `listener`, which hears once its maker is ready of each that came. */
  handTo(signal: NodeJS.Signals, listener: () => void): void {
    if (!this.#drop(signal)) return;
    for (const one of this.#arrived) if (one === signal) queueMicrotask(listener);
  }

  /**
   * Nobody here answers them: they do what they do by themselves, one that came does it now. One that came while this
   * thread was busy with what it loaded is told by the loop's next poll; without its listener it would be lost.
   */
  async release(): Promise<void> {
    // The first comes before that poll, the second behind it.
    await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
    for (const signal of signals) this.#drop(signal);
    const [first] = this.#arrived;
    if (first !== undefined) this.#process.kill(this.#process.pid, first);
  }

  #drop(signal: NodeJS.Signals): boolean {
    const hold = this.#holders.get(signal);
    if (!hold) return false;
    this.#process.removeListener(signal, hold);
    return this.#holders.delete(signal);
  }
}
