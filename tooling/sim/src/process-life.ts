import type { Cancel, Host, TimerOptions } from "@turnkeeper/kernel";
import type { VirtualHost } from "@turnkeeper/kernel/testing";

type State = "running" | "stopped" | "dead";

/**
 * The life of one simulated process: it runs, is stopped (SIGSTOP) and continued, or dies (kill -9). Everything that
 * would run in it passes through here, so a stopped process does nothing until it is continued, and a dead one nothing
 * ever again, `finally` blocks included.
 */
export class ProcessLife {
  readonly host: Host;
  readonly pid: number;
  #state: State = "running";
  #held: (() => void)[] = [];

  constructor(world: VirtualHost, pid: number) {
    this.pid = pid;
    const guard = (fn: () => void) => (): void => this.run(fn);
    this.host = {
      clock: world.clock,
      random: world.random,
      timers: {
        after: (ms: number, fn: () => void, options?: TimerOptions): Cancel =>
          world.timers.after(ms, guard(fn), options),
        afterPoll: (fn: () => void): Cancel => world.timers.afterPoll(guard(fn)),
        soon: (fn: () => void): Cancel => world.timers.soon(guard(fn)),
      },
    };
  }

  get state(): State {
    return this.#state;
  }

  /** Runs `fn` now, when the process is continued, or never. */
  run(fn: () => void): void {
    if (this.#state === "running") fn();
    else if (this.#state === "stopped") this.#held.push(fn);
  }

  /** Resolves when the process may go on; never, once it is dead. */
  awake(): Promise<void> {
    return new Promise((resolve) => this.run(resolve));
  }

  stop(): void {
    if (this.#state === "running") this.#state = "stopped";
  }

  continue(): void {
    if (this.#state !== "stopped") return;
    this.#state = "running";
    const held = this.#held.splice(0);
    for (const fn of held) this.run(fn);
  }

  kill(): void {
    this.#state = "dead";
    this.#held = [];
  }
}
