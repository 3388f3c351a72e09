import type { Timers } from "@turnkeeper/kernel";

/** What an interrupt must know of a compaction; `@turnkeeper/compression-fence` is one. */
export interface CommitBarrier {
  readonly commitInFlight: boolean;
  /** Settles once no commit is in flight. Must change nothing: the stop that waits may still be vetoed. */
  settled(): Promise<void>;
  /** Keeps a commit that has not begun from beginning; leaves one that runs alone. */
  cancelPending(): void;
}

/** The waits of one turn's stops for its commits: each bounded, and all over when the turn is. */
export interface CommitWaits {
  /**
   * Settles behind the poll phase that follows the end of the commit in flight or `boundMs`, whichever comes first; at
   * once when the turn ends. Rejects with what the barrier threw. Changes nothing.
   */
  wait(barrier: CommitBarrier, boundMs: number): Promise<void>;
  endAll(): void;
}

export function createCommitWaits(timers: Timers): CommitWaits {
  const ends = new Set<() => void>();
  const wait = (barrier: CommitBarrier, boundMs: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const release = (): void => {
        cancel();
        ends.delete(end);
      };
      const end = (): void => {
        release();
        resolve();
      };
      // A late timer runs before late data: behind the poll phase, progress that had already arrived has voided a claim.
      const goBehindPoll = (): void => {
        if (!ends.has(end)) return;
        cancel();
        cancel = timers.afterPoll(end);
      };
      let cancel = timers.after(boundMs, goBehindPoll);
      ends.add(end);
      // One wait, not a loop: a commit that begins meanwhile owns itself, and the bound holds whatever the barrier does.
      const settled = (async () => barrier.settled())();
      settled.then(goBehindPoll, (error: unknown) => {
        release();
        reject(error);
      });
    });
  return {
    wait,
    endAll: () => {
      for (const end of ends) end();
    },
  };
}
