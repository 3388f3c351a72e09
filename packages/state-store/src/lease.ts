/**
 * The expiring, exclusive right to run a session's turn, as every store grants it.
 *
 * Owns LEASE-1: at most one unexpired lease a session, by the store's clock.
 * Owns LEASE-2: each grant's fencing token is greater than every earlier one, after release, restart and deletion too.
 * Owns LEASE-4: a release or renewal with an old token changes nothing.
 * Leaves to turn-lease until when a holder may believe in its lease, and which holder is dead.
 *
 * | the lease is | acquire | renew, release under its grant | under any other |
 * | --- | --- | --- | --- |
 * | free | granted, behind, nothing-to-run | lost, stale | lost, stale |
 * | live | held; taken by a reclaim that names it | renewed, released | lost, stale |
 * | expired | as free; its unfinished turn is settled | revived, released | lost, stale |
 * | of another boot | held; taken by a reclaim that names it | renewed under this boot, released | lost, stale |
 *
 * A suspended turn stands in the way of a free lease: every acquire is answered `suspended`, but the one that resumes it.
 */
import type { TakenInput, PendingInput } from "./inbox.ts";
import type { Grant, Holder } from "./identity.ts";
import type { Predecessor, RunningTurn, SuspendedTurn } from "./turn.ts";

/** A standing grant as the store sees it. */
export interface LeaseView {
  readonly sessionId: string;
  readonly holder: Holder;
  readonly fencingToken: number;
  readonly ttlMs: number;
  /** Grows with each renewal: a contender whose clock cannot be compared watches it stand still. */
  readonly renewCount: number;
  /**
   * `live` or `expired` by the store's clock; `other-boot` when the lease was written under another boot of this
   * kernel, whose clock says nothing here.
   */
  readonly standing: "live" | "expired" | "other-boot";
  /** Milliseconds until expiry by the store's clock; meaningless under `other-boot`. */
  readonly expiresInMs: number;
  /** Wall times, for people. */
  readonly acquiredAtMs: number;
  readonly expiresAtMs: number;
}

export interface AcquireRequest {
  readonly sessionId: string;
  readonly holder: Holder;
  readonly ttlMs: number;
  /**
   * The grant that the caller proved dead, or watched for a whole TTL without a renewal. The take is conditional on
   * that grant still standing, with that renewal count where one is given.
   */
  readonly reclaim?: Grant & { readonly renewCount?: number };
  /**
   * Begins a turn in the same transaction, with the oldest input that this runner may run. Taking an input writes its
   * user entry (`takenEntry`): a message that reached a turn is in the transcript, once. With `resumes` a suspended turn
   * whose calls are all answered is resumed instead, ahead of everything that waits: it came before. With a turn's id that
   * one is, and no other.
   */
  readonly begin?: { readonly turnId: string; readonly runnerId: string; readonly resumes?: boolean | string };
}

export type AcquireResult =
  | {
      readonly kind: "granted";
      readonly fencingToken: number;
      /**
       * The transcript's revision before the begun turn's own user entry: a copy loaded at that revision needs only
       * what came after it, any other must be loaded again.
       */
      readonly revision: number;
      /** What the begun turn took, or the resumed one took first; present exactly when `begin` was asked for. */
      readonly input?: TakenInput;
      /** The turn that goes on in place of a new one, with the answers it waited for. */
      readonly resumed?: RunningTurn;
      /**
       * The turns that did not end themselves, oldest first, whoever settled them: their processes must end before this
       * grant's first side effect. Answered to every grant until a turn has ended itself; absent where there is none.
       */
      readonly predecessors?: readonly Predecessor[];
    }
  /** Somebody holds it. */
  | { readonly kind: "held"; readonly lease: LeaseView }
  /** Free, but a live waiter is first; its claim period runs from its wake-up. Wake it, and come back. */
  | { readonly kind: "behind"; readonly head: PendingInput }
  /** Nobody holds it, but its turn waits for answers, or for somebody who resumes it. */
  | { readonly kind: "suspended"; readonly turn: SuspendedTurn }
  /**
   * Free, and no input waits that this runner may run, or this very request was granted before and somebody else has
   * ended its turn since. Nothing was taken. Only with `begin`.
   */
  | { readonly kind: "nothing-to-run" };

export type RenewResult = { readonly kind: "renewed" } | { readonly kind: "lost"; readonly lease?: LeaseView };

/**
 * What a freed session leaves to do: how many inputs want a turn (`wantsTurn`). `head` is the first live waiter: its claim period has begun, wake it and it runs
 * the orphans too. With inputs pending and no head there are orphans only: whoever frees the session competes again.
 */
export interface HandOver {
  readonly pendingCount: number;
  readonly head?: PendingInput;
}

export type ReleaseResult = ({ readonly kind: "released" } & HandOver) | { readonly kind: "stale" };

/**
 * The expiring, exclusive right to run a session's turn. Expiry is judged by the store's clock alone; every other
 * check is on `(holderId, fencingToken)`, so a holder whose unclaimed lease ran out may revive it by renewing.
 */
export interface LeaseStore {
  /**
   * Asks once, never waits. Keeps LEASE-1 and LEASE-2; settles an unfinished turn in the same transaction.
   * Repeated with a `holderId` that already holds (after an indeterminate failure) it answers that grant again, renewed
   * to `ttlMs` from now.
   */
  acquire(request: AcquireRequest): Promise<AcquireResult>;
  /** Pushes expiry to `ttlMs` from now. `lost`, and nothing changed, when the grant was replaced (LEASE-4). */
  renew(grant: Grant, ttlMs: number): Promise<RenewResult>;
  /**
   * Frees the session and wakes the queue. A turn that this grant left running is settled in the same transaction, as
   * after a crash: no turn runs without a lease. `stale`, and nothing changed, when the grant was replaced or released
   * (LEASE-4).
   */
  release(grant: Grant): Promise<ReleaseResult>;
  /** A cheap read, fit for polling. Absent: free. */
  read(sessionId: string): Promise<LeaseView | undefined>;
}
