/** A process's own view of a shared virtual machine: it can be stopped, and then its timers and answers wait. */
import type { Cancel, Host } from "@turnkeeper/kernel";

export interface StoppableHost extends Host {
  stop(): void;
  /** Timers first, then answers: so does an event loop that was held up. */
  continue(): void;
  /** Nothing of it runs any more. */
  kill(): void;
  readonly isRunning: boolean;
  readonly isDead: boolean;
  /** The answer of somebody outside, who has done his work whether this process runs or not. */
  answer<Value>(work: Promise<Value>): Promise<Value>;
}

export function stoppableHost(host: Host): StoppableHost {
  let state: "running" | "stopped" | "dead" = "running";
  const dueTimers: (() => void)[] = [];
  const answers: (() => void)[] = [];
  const armed = new Set<Cancel>();
  const whenRunning = (queue: (() => void)[], fn: () => void): void => {
    if (state === "running") fn();
    else if (state === "stopped") queue.push(fn);
  };
  const gated = (arm: (fn: () => void) => Cancel, fn: () => void): Cancel => {
    let isCancelled = false;
    const disarm = (): void => {
      isCancelled = true;
      armed.delete(disarm);
      cancel();
    };
    const cancel = arm(() => {
      armed.delete(disarm);
      whenRunning(dueTimers, () => void (isCancelled || fn()));
    });
    armed.add(disarm);
    return disarm;
  };
  return {
    clock: host.clock,
    random: host.random,
    timers: {
      after: (ms, fn) => gated((due) => host.timers.after(ms, due), fn),
      afterPoll: (fn) => gated((due) => host.timers.afterPoll(due), fn),
      soon: (fn) => gated((due) => host.timers.soon(due), fn),
    },
    stop: () => void (state = state === "running" ? "stopped" : state),
    continue: () => {
      if (state !== "stopped") return;
      state = "running";
      for (const queue of [dueTimers, answers]) for (const fn of queue.splice(0)) fn();
    },
    kill: () => {
      state = "dead";
      for (const disarm of armed) disarm();
    },
    get isRunning() {
      return state === "running";
    },
    get isDead() {
      return state === "dead";
    },
    answer: (work) =>
      new Promise((resolve, reject) => {
        work.then(
          (value) => whenRunning(answers, () => resolve(value)),
          (error: unknown) =>
            whenRunning(answers, () => reject(error instanceof Error ? error : new Error("rejected with no error"))),
        );
      }),
  };
}
