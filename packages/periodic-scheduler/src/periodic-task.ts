import { AsyncResource } from "node:async_hooks";
import type { DueEntry } from "./due-queue.ts";

/** What is run periodically. `false`, returned or resolved, ends the task. */
export type PeriodicBody = () => unknown;

/** A scheduled task, as its owner sees it. */
export interface PeriodicHandle {
  readonly name: string;
  /** Whether it will run again: false once it was cancelled or its body answered `false`. */
  readonly active: boolean;
  /** How many runs have begun. */
  readonly runCount: number;
  /**
   * Ends the task: no run begins any more; one in flight goes on to its end. Resolves at once, or with `waitMs` when
   * the run in flight has settled, after `waitMs` milliseconds at the latest. A body that cancels itself in its
   * synchronous part is not waited for. Safe to repeat.
   */
  cancel(options?: CancelOptions): Promise<void>;
}

export interface CancelOptions {
  readonly waitMs?: number;
}

export type TaskState =
  /** Queued for its next run. */
  | "waiting"
  | "running"
  /** Cancelled in a run that has not settled. */
  | "ending"
  | "ended";

export interface TaskFacts {
  readonly name: string;
  readonly everyMs: number;
  readonly order: number;
}

/** One task with its place in the queue; the scheduler alone moves it. */
export class PeriodicTask implements PeriodicHandle, DueEntry {
  readonly name: string;
  readonly everyMs: number;
  readonly order: number;
  position = -1;
  dueMs: number;
  state: TaskState = "waiting";
  runCount = 0;
  #body: PeriodicBody | undefined;
  // The ambient context of whoever scheduled the task. An AsyncResource costs 76 bytes; AsyncLocalStorage.snapshot()
  // holds the same and costs 2,700.
  #context: AsyncResource | undefined;
  #waiters: (() => void)[] | undefined;
  readonly #end: (task: PeriodicTask, options: CancelOptions) => Promise<void>;

  constructor(
    facts: TaskFacts,
    body: PeriodicBody,
    dueMs: number,
    end: (task: PeriodicTask, options: CancelOptions) => Promise<void>,
  ) {
    this.name = facts.name;
    this.everyMs = facts.everyMs;
    this.order = facts.order;
    this.dueMs = dueMs;
    this.#body = body;
    this.#context = new AsyncResource("PeriodicTask", { requireManualDestroy: true });
    this.#end = end;
  }

  get active(): boolean {
    return this.state === "waiting" || this.state === "running";
  }

  cancel(options: CancelOptions = {}): Promise<void> {
    return this.#end(this, options);
  }

  /** Runs the body once in the context it was scheduled in. */
  run(): unknown {
    const body = this.#body;
    return body && this.#context?.runInAsyncScope(body);
  }

  /** Lets go of body and context: a task that ended keeps nobody's memory, however long its handle is kept. */
  forget(): void {
    this.#body = undefined;
    this.#context = undefined;
  }

  onSettled(listener: () => void): void {
    (this.#waiters ??= []).push(listener);
  }

  tellSettled(): void {
    const waiters = this.#waiters ?? [];
    this.#waiters = undefined;
    for (const waiter of waiters) waiter();
  }
}
