import type { Host } from "@turnkeeper/kernel";
import { busyError } from "./store-failure.ts";

/** A call that waits for its turn at the write lock. */
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

interface WaitingJob extends WriteJob {
  readonly sinceMs: number;
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
  readonly #waiting: WaitingJob[] = [];
  readonly #listeners: (() => void)[] = [];
  #isDraining = false;

  constructor(path: string) {
    this.#path = path;
  }

  add(job: WriteJob): void {
    this.#waiting.push({ ...job, sinceMs: job.host.clock.monotonicMs() });
    if (!this.#isDraining) void this.#drain();
  }

  /** Resolves when no job of this owner waits any more. */
  async settled(owner: object): Promise<void> {
    while (this.#waiting.some((job) => job.owner === owner))
      await new Promise<void>((resolve) => void this.#listeners.push(resolve));
  }

  /** Rejects every waiting job: the store was sealed. */
  rejectAll(error: unknown): void {
    for (const job of [...this.#waiting]) this.#remove(job, error);
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    let pauseCount = 0;
    let pieceSinceMs = this.#waiting[0]?.sinceMs ?? 0;
    for (let job = this.#waiting[0]; job; job = this.#waiting[0]) {
      const { host } = job;
      if (job.run() === "busy") {
        await pause(host, host.random.unit() * Math.min(2 ** pauseCount++, longestPauseMs));
        this.#dismissImpatient();
        pieceSinceMs = host.clock.monotonicMs();
        continue;
      }
      pauseCount = 0;
      this.#remove(job);
      if (this.#waiting.length === 0 || host.clock.monotonicMs() - pieceSinceMs < longestPieceMs) continue;
      await pause(host, 0);
      pieceSinceMs = host.clock.monotonicMs();
    }
    this.#isDraining = false;
  }

  #remove(job: WaitingJob, error?: unknown): void {
    const index = this.#waiting.indexOf(job);
    if (index < 0) return;
    this.#waiting.splice(index, 1);
    if (error !== undefined) job.reject(error);
    for (const listener of this.#listeners.splice(0)) listener();
  }

  #dismissImpatient(): void {
    for (const job of [...this.#waiting]) {
      const waitedMs = job.host.clock.monotonicMs() - job.sinceMs;
      if (waitedMs >= job.patienceMs)
        this.#remove(job, busyError({ attempt: job.attempt, path: this.#path }, waitedMs));
    }
  }
}
