import type { AbortClaim, ProgressSnapshot } from "./progress-clock.ts";

/** What was seen of a silent turn. An observation, never a verdict. */
export interface StallObservation extends ProgressSnapshot {
  readonly name: string;
  readonly timeoutMs: number;
}

/** The turn that is watched. Callbacks are short and synchronous; one that throws is reported and changes nothing. */
export interface WatchedTurn {
  /** Names the turn in faults and among the scheduler's tasks. */
  readonly name: string;
  /** Re-reads the lease after a gap; false or a rejection: judge nobody on this look. */
  confirmLease?(): Promise<boolean>;
  /**
   * Stops the turn if the claim can still be consumed: consume it in the same synchronous step that publishes the stop.
   * True: published. False or a rejection: nothing was published, and the turn goes on.
   */
  commitAbort(claim: AbortClaim, observation: StallObservation): Promise<boolean>;
  /** The turn is silent beyond its bound; a stop will be tried. At most once a generation. */
  onStall(observation: StallObservation): void;
  /** Progress has followed an observation. */
  onResume?(): void;
  /** The stop was published: the place to say "aborted". */
  onAborted(observation: StallObservation): void;
  /** Behind `onAborted`: the place to stop renewing the lease. */
  withdraw?(): void;
}
