/**
 * All periodic work of a process on one timer.
 *
 * Owns SCHED-1: a task never overlaps itself and never delays another.
 *
 * The timer only orders; each body runs on its own promise. A body that never settles holds up itself alone, one that
 * throws is reported and run again. What no scheduler on an event loop can give: a body that computes for a second
 * delays everybody by that second, so bodies are short. Every body's own time limit is its own affair.
 *
 *   state    event                      next     effect
 *   waiting  its slot has come          running  the body starts in the context of its `schedule`
 *   waiting  cancel, close              ended    leaves the queue; body and context are let go
 *   running  body settles               waiting  due one interval later; a failure is reported
 *   running  body answers `false`       ended
 *   running  cancel, close              ending   the run goes on
 *   ending   body settles               ended    whoever waited for the cancel is told
 */
import { AsyncResource } from "node:async_hooks";
import { CodedError } from "@turnkeeper/kernel";
import type { Cancel, Host } from "@turnkeeper/kernel";
import { DueQueue } from "./due-queue.ts";
import { invalidOption, resolvePeriodicSchedulerOptions } from "./options.ts";
import type { PeriodicSchedulerOptions } from "./options.ts";
import { PeriodicTask } from "./periodic-task.ts";
import type { CancelOptions, PeriodicBody, PeriodicHandle } from "./periodic-task.ts";

/** Runs tasks periodically, all on one timer that keeps no process alive. */
export interface PeriodicScheduler {
  /**
   * Runs `body` every `everyMs` milliseconds, the first time one interval from now; the next run is due one interval
   * after the last one settled. Slots delay a run by up to `slackMs`, or twice as much where the interval is of 20 slots
   * or more; that delay is made good in the next interval, so the mean period is exact. Missed runs are not made up. Keeps SCHED-1. Throws `OPTION_INVALID`, `SCHEDULER_CLOSED`.
   */
  schedule(body: PeriodicBody, everyMs: number, facts: { readonly name: string }): PeriodicHandle;
  /** Cancels every task and refuses new ones; afterwards no timer fires. Safe to repeat. */
  close(options?: CancelOptions): Promise<void>;
}

export interface PeriodicSchedulerDeps {
  readonly host: Host;
  /** Told of each failed run. Default: a process warning, so a failure is never silent. */
  readonly onError?: (error: unknown, taskName: string) => void;
}

/** A task whose interval is at least so many slots long uses each second of them. */
const seldomSlotCount = 20;
/** How long due bodies may keep the event loop before others get a turn. */
const burstMs = 5;
/** A timer of the runtime may fire a fraction of a millisecond early; such a run is not worth a second wake-up. */
const timerResolutionMs = 1;

/** The context of no task. A timer armed inside a task's context would keep it, and all it refers to, for ever. */
const outside = new AsyncResource("PeriodicScheduler", { requireManualDestroy: true });

function warn(error: unknown, taskName: string): void {
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.emitWarning(`The periodic task "${taskName}" failed and will run again.`, {
    code: "PERIODIC_TASK_FAILED",
    detail,
  });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

class Scheduler implements PeriodicScheduler {
  readonly #host: Host;
  readonly #onError: (error: unknown, taskName: string) => void;
  readonly #slackMs: number;
  readonly #queue: DueQueue<PeriodicTask>;
  readonly #running = new Set<PeriodicTask>();
  #scheduledCount = 0;
  #armedForMs = Number.POSITIVE_INFINITY;
  #disarm: Cancel = () => {};
  #isClosed = false;
  /** The task whose body is on the stack: it may cancel itself without waiting for itself. */
  #onStack: PeriodicTask | undefined;

  constructor(deps: PeriodicSchedulerDeps, slackMs: number) {
    this.#host = deps.host;
    this.#onError = deps.onError ?? warn;
    this.#slackMs = slackMs;
    this.#queue = new DueQueue((task) => this.#slotOf(task));
  }

  schedule(body: PeriodicBody, everyMs: number, facts: { readonly name: string }): PeriodicHandle {
    const { name } = facts;
    if (!Number.isFinite(everyMs) || everyMs <= 0) {
      throw invalidOption(`everyMs of task "${name}"`, "a finite number of milliseconds above 0", everyMs);
    }
    if (this.#isClosed) {
      throw new CodedError("SCHEDULER_CLOSED", `Task "${name}" was not scheduled: the scheduler is closed.`, {
        context: { name },
      });
    }
    const order = this.#scheduledCount++;
    const task = new PeriodicTask({ name, everyMs, order }, body, this.#nowMs() + everyMs, this.#end);
    this.#queue.add(task);
    this.#arm();
    return task;
  }

  async close(options: CancelOptions = {}): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#queue.entries(), ...this.#running].map((task) => this.#end(task, options)));
  }

  #nowMs(): number {
    return this.#host.clock.monotonicMs();
  }

  /** Each second slot is enough for what is as seldom as that. */
  #slackOf({ everyMs }: PeriodicTask): number {
    return everyMs >= seldomSlotCount * this.#slackMs ? 2 * this.#slackMs : this.#slackMs;
  }

  #slotOf(task: PeriodicTask): number {
    if (this.#slackMs === 0) return task.dueMs;
    const slackMs = this.#slackOf(task);
    return Math.ceil(task.dueMs / slackMs) * slackMs;
  }

  #arm(): void {
    const first = this.#queue.first();
    if (!first) {
      this.#disarm();
      this.#armedForMs = Number.POSITIVE_INFINITY;
      return;
    }
    const slotMs = this.#slotOf(first);
    if (slotMs >= this.#armedForMs) return;
    this.#disarm();
    this.#armedForMs = slotMs;
    const delayMs = Math.ceil(Math.max(0, slotMs - this.#nowMs()));
    this.#disarm = outside.runInAsyncScope(() => this.#host.timers.after(delayMs, this.#fire, { keepAlive: false }));
  }

  readonly #fire = (): void => {
    // While the burst runs nobody arms the timer: the last line does, once.
    this.#armedForMs = Number.NEGATIVE_INFINITY;
    const startedMs = this.#nowMs();
    for (let task = this.#queue.first(); task; task = this.#queue.first()) {
      const nowMs = this.#nowMs();
      // A large burst lets the event loop breathe; the rest runs behind the I/O that has come in.
      if (this.#slotOf(task) - startedMs >= timerResolutionMs || nowMs - startedMs >= burstMs) break;
      this.#queue.remove(task);
      this.#run(task, nowMs);
    }
    this.#armedForMs = Number.POSITIVE_INFINITY;
    this.#arm();
  };

  #run(task: PeriodicTask, startedMs: number): void {
    task.state = "running";
    task.runCount++;
    this.#running.add(task);
    const lateMs = startedMs - task.dueMs;
    this.#onStack = task;
    try {
      const answer = task.run();
      if (isThenable(answer)) {
        // A promise of ours: one of theirs may settle twice, or throw while it is asked.
        new Promise((resolve) => resolve(answer)).then(
          (settled) => this.#settle(task, lateMs, settled),
          (error: unknown) => this.#fail(task, lateMs, error),
        );
      } else this.#settle(task, lateMs, answer);
    } catch (error) {
      this.#fail(task, lateMs, error);
    } finally {
      this.#onStack = undefined;
    }
  }

  #fail(task: PeriodicTask, lateMs: number, error: unknown): void {
    this.#settle(task, lateMs, undefined);
    try {
      this.#onError(error, task.name);
    } catch (reporterError) {
      // One broken reporter must not stop the tasks of everybody else.
      warn(reporterError, task.name);
    }
  }

  #settle(task: PeriodicTask, lateMs: number, answer: unknown): void {
    this.#running.delete(task);
    if (task.state === "ending" || answer === false) {
      task.state = "ended";
      task.forget();
    } else {
      task.state = "waiting";
      // What the slots cost is given back, or each period would be half a slot too long; a longer delay (a blocked
      // loop, a stopped process) is not, or runs would crowd after it.
      const givenBackMs = Math.min(Math.max(0, lateMs), this.#slackOf(task), task.everyMs / 2);
      task.dueMs = this.#nowMs() + task.everyMs - givenBackMs;
      this.#queue.add(task);
      this.#arm();
    }
    task.tellSettled();
  }

  readonly #end = async (task: PeriodicTask, { waitMs = 0 }: CancelOptions): Promise<void> => {
    if (task.state === "waiting") {
      task.state = "ended";
      this.#queue.remove(task);
      task.forget();
      if (this.#queue.size === 0) this.#arm();
    } else if (task.state === "running") task.state = "ending";
    if (task.state !== "ending" || waitMs === 0 || task === this.#onStack) return;
    await new Promise<void>((resolve) => {
      const giveUp = this.#host.timers.after(waitMs, resolve);
      task.onSettled(() => {
        giveUp();
        resolve();
      });
    });
  };
}

/** Makes a scheduler of its own; most callers want `sharedScheduler`. Throws `OPTION_INVALID`. */
export function createPeriodicScheduler(
  deps: PeriodicSchedulerDeps,
  options: PeriodicSchedulerOptions = {},
): PeriodicScheduler {
  return new Scheduler(deps, resolvePeriodicSchedulerOptions(options).slackMs);
}
