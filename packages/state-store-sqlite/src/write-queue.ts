import type { Host } from "@turnkeeper/kernel";
import type { Durability } from "./connection.ts";
import { busyError } from "./store-failure.ts";
import type { Transaction } from "./transaction.ts";

/** One call's part of a transaction. Its body may run more than once; it is answered once, after the commit. */
export interface Write {
  /** The handle that asked; its close waits for its writes. */
  readonly owner: object;
  readonly host: Host;
  /** Says what is attempted, for the message when it fails. */
  readonly attempt: string;
  /** When it was asked for, on its host's monotonic clock. */
  readonly sinceMs: number;
  /** How long it waits for a lock that another process holds. */
  readonly patienceMs: number;
  readonly durability: Durability;
  /** Runs the body and keeps its value. Throws what the body throws. */
  readonly stage: (tx: Transaction) => void;
  /** Answers with the value of the last staging. */
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Commits some of the first of `writes` together and answers them; answers how many those were, 0 when the lock is
 * somebody else's. Never throws.
 */
export type CommitGroup = (writes: readonly Write[]) => number;

/** The longest pause between two attempts; pauses double up to it. */
const longestPauseMs = 64;

/** A group costs its last member the time of all; beyond this the wait outweighs the fsync that is shared. */
const groupSizeMax = 256;

/**
 * The writes of one file, committed in the order they were called (a release never overtakes an append), those that
 * wait together in one transaction. A write that waits for the disk anyway first lets the event loop deliver what is
 * due, so that the steps of other sessions can join it; one that does not, waits for nothing.
 *
 * While another process has the lock, the head of the queue tries again after U(0, min(2^n, 64)) ms: full jitter had
 * the shortest tails and starved nobody. Each write waits for its own patience, wherever it stands.
 */
export class WriteQueue {
  readonly #path: string;
  readonly #commitGroup: CommitGroup;
  #waiting: Write[] = [];
  readonly #listeners: (() => void)[] = [];
  #isDraining = false;

  constructor(path: string, commitGroup: CommitGroup) {
    this.#path = path;
    this.#commitGroup = commitGroup;
  }

  add(write: Write): void {
    this.#waiting.push(write);
    if (!this.#isDraining) void this.#drain();
  }

  /** Resolves when no write of this owner waits any more. */
  async settled(owner: object): Promise<void> {
    while (this.#waiting.some((write) => write.owner === owner))
      await new Promise<void>((resolve) => void this.#listeners.push(resolve));
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    let pauseCount = 0;
    for (let head = this.#waiting[0]; head; head = this.#waiting[0]) {
      if (pauseCount > 0) await this.#pause(head.host, pauseCount);
      else await this.#gather(head);
      pauseCount = this.#commit() ? 0 : pauseCount + 1;
    }
    this.#isDraining = false;
  }

  /** Answers whether the lock could be had. */
  #commit(): boolean {
    const settledCount = this.#commitGroup(this.#waiting.slice(0, groupSizeMax));
    this.#waiting.splice(0, settledCount);
    if (this.#listeners.length > 0) this.#notify();
    return settledCount > 0;
  }

  #gather({ host, durability }: Write): Promise<void> | undefined {
    if (durability === "normal") return undefined;
    return new Promise((resolve) => void host.timers.soon(resolve));
  }

  async #pause(host: Host, pauseCount: number): Promise<void> {
    const pauseMs = host.random.unit() * Math.min(2 ** (pauseCount - 1), longestPauseMs);
    await new Promise<void>((resolve) => void host.timers.after(pauseMs, resolve));
    this.#dismissImpatient();
  }

  #dismissImpatient(): void {
    this.#waiting = this.#waiting.filter((write) => {
      const waitedMs = write.host.clock.monotonicMs() - write.sinceMs;
      if (waitedMs < write.patienceMs) return true;
      write.reject(busyError({ attempt: write.attempt, path: this.#path }, waitedMs));
      return false;
    });
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners.splice(0)) listener();
  }
}
