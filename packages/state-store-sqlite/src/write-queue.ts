import type { Host } from "@turnkeeper/kernel";
import { busyError } from "./store-failure.ts";

/** A call that waits for its turn at the lock of a file. */
export interface WriteJob {
  /** The handle that asked; its close waits for its jobs. */
  readonly owner: object;
  readonly host: Host;
  /** Says what is attempted, for the message when patience ends. */
  readonly attempt: string;
  readonly patienceMs: number;
  /** One synchronous attempt, which never throws: `busy` when the lock was somebody else's, else the call is settled. */
  readonly run: () => "settled" | "busy";
  readonly reject: (error: unknown) => void;
}

/** The longest pause between two attempts; pauses double up to it. */
const longestPauseMs = 64;

/** After so much work in one piece the event loop gets its turn. */
const longestPieceMs = 8;

function pause(host: Host, ms: number): Promise<void> {
  return new Promise((resolve) => void host.timers.after(ms, resolve));
}

/**
 * The writes of one file in the order they were called (a release never overtakes an append). While the lock is free
 * a job runs inside the call; while another process has it, the head of the queue tries again after U(0, min(2^n, 64))
 * ms: full jitter had the shortest tails and starved nobody. Each job waits for its own patience, wherever it stands.
 */
export class WriteQueue {
  readonly #path: string;
  /** Since when each waits, in the order of calls. */
  readonly #waiting = new Map<WriteJob, number>();
  readonly #listeners: (() => void)[] = [];
  #running: WriteJob | undefined;
  #isDraining = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Runs the job now, unless others were called before it; else it waits for its turn. */
  add(job: WriteJob): void {
    if (this.#waiting.size > 0 || job.run() === "busy") this.wait(job);
  }

  /** Puts a job that found the lock taken behind those that wait already. */
  wait(job: WriteJob): void {
    this.#waiting.set(job, job.host.clock.monotonicMs());
    if (!this.#isDraining) void this.#drain();
  }

  /** Resolves when no job of this owner waits any more. */
  async settled(owner: object): Promise<void> {
    while ([...this.#waiting.keys()].some((job) => job.owner === owner))
      await new Promise<void>((resolve) => void this.#listeners.push(resolve));
  }

  /** Rejects every waiting job but the one that runs, which knows better: the store was sealed. */
  rejectAll(errorFor: (attempt: string) => unknown): void {
    for (const job of this.#waiting.keys()) if (job !== this.#running) this.#remove(job, errorFor(job.attempt));
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    let pauseCount = 0;
    for (let job = this.#head(); job; job = this.#head()) {
      const { host } = job;
      await pause(host, host.random.unit() * Math.min(2 ** pauseCount++, longestPauseMs));
      this.#dismissImpatient();
      if (this.#runPiece(host) === "moved") pauseCount = 0;
    }
    this.#isDraining = false;
  }

  /** Runs jobs until one finds the lock taken, none is left, or the event loop has waited long enough. */
  #runPiece(host: Host): "moved" | "stuck" {
    const sinceMs = host.clock.monotonicMs();
    let result: "moved" | "stuck" = "stuck";
    for (let job = this.#head(); job; job = this.#head()) {
      this.#running = job;
      const outcome = job.run();
      this.#running = undefined;
      if (outcome === "busy") break;
      this.#remove(job);
      result = "moved";
      if (host.clock.monotonicMs() - sinceMs >= longestPieceMs) break;
    }
    return result;
  }

  #head(): WriteJob | undefined {
    for (const job of this.#waiting.keys()) return job;
    return undefined;
  }

  #remove(job: WriteJob, error?: unknown): void {
    if (!this.#waiting.delete(job)) return;
    if (error !== undefined) job.reject(error);
    for (const listener of this.#listeners.splice(0)) listener();
  }

  #dismissImpatient(): void {
    for (const [job, sinceMs] of this.#waiting) {
      const waitedMs = job.host.clock.monotonicMs() - sinceMs;
      if (waitedMs >= job.patienceMs)
        this.#remove(job, busyError({ attempt: job.attempt, path: this.#path }, waitedMs));
    }
  }
}
