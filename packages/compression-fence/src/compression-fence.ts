/**
 * The fence between a compaction and a stop of its turn: a stop either waits for a commit or prevents it, never tears it.
 *
 * Owns COMP-1: a summary is applied only to the basis it was made from; later entries stay, in order, once.
 * Owns COMP-2: a vetoed abort never cancels a pending commit; a committed one never tears a running one.
 *
 * COMP-1 is kept by `replaceWithSummary`, which hands one basis to the summariser and to the store; that the store then
 * refuses a basis that no longer holds is state-store's part. COMP-2 is kept here by what `cancelPending` may touch, and
 * by interrupt, which reads `commitInFlight` and waits for `settled()` before it publishes and cancels only after.
 *
 * It leaves to the store what a commit writes (one synchronous transaction, fenced by its token), to interrupt when to
 * cancel, to agent-core when to summarise. "In flight" is the await around that transaction: from `begin` to `finish`.
 *
 * | state              | begin                  | finish (of this commit) | cancel    | revoke              |
 * | ------------------ | ---------------------- | ----------------------- | --------- | ------------------- |
 * | open               | committing             | –                       | cancelled | revoked             |
 * | open, past deadline| refused: deadline      | –                       | cancelled | revoked             |
 * | committing         | refused                | open                    | –         | committing, revoked |
 * | committing, revoked| refused                | revoked                 | –         | –                   |
 * | cancelled, revoked, deadline | refused, for good | –                  | –         | –                   |
 */
import type { Host } from "@turnkeeper/kernel";
import { nextFenceState, openFence } from "./fence-state.ts";
import type { FenceEvent, FenceRefusal, FenceState } from "./fence-state.ts";
import { resolveCompressionFenceOptions } from "./options.ts";
import type { CompressionFenceOptions } from "./options.ts";

/** A commit that was admitted. It must be finished, also when the write failed: `using`, or `finally`. */
export interface Commit extends Disposable {
  /** Ends the commit and lets waiters go on. Safe to repeat; a late repeat never ends a newer commit. */
  finish(): void;
}

export interface CompressionFence {
  /**
   * Asks to commit now. `undefined`: refused, and `refusal` says why. Synchronous: nothing can come between the answer
   * and the write it protects. A second commit after a finished one is admitted.
   */
  begin(): Commit | undefined;
  /** Keeps a commit that has not begun from beginning, for good; one that runs owns itself and is left alone. */
  cancelPending(): void;
  /** Admits no commit any more; one that runs is finished first. For the end of the turn. Safe to repeat. */
  revoke(): void;
  /** Settles once no commit is in flight; at once when none is. Changes nothing, so a waiter may still be vetoed. */
  settled(): Promise<void>;
  readonly commitInFlight: boolean;
  /** Why `begin` would refuse now; absent when it would admit. */
  readonly refusal: FenceRefusal | undefined;
}

interface Settling {
  readonly done: Promise<void>;
  resolve(): void;
}

function settling(): Settling {
  let settle: (() => void) | undefined;
  const done = new Promise<void>((resolve) => {
    settle = resolve;
  });
  return { done, resolve: () => settle?.() };
}

/**
 * Makes the fence of one turn's compactions.
 *
 * Keeps COMP-2. Never throws after creation; rejects bad options with `OPTION_INVALID`. Structurally it is the
 * `CommitBarrier` of `@turnkeeper/interrupt`. Holds no timer: the deadline is looked at when a commit asks.
 */
export function createCompressionFence(
  dependencies: { readonly host: Host },
  options: CompressionFenceOptions = {},
): CompressionFence {
  const { clock } = dependencies.host;
  const { deadlineMs } = resolveCompressionFenceOptions(options);
  const createdAtMs = clock.monotonicMs();
  let state: FenceState = openFence;
  let commitCount = 0;
  let inFlight: Settling | undefined;

  const isLate = (): boolean => clock.monotonicMs() - createdAtMs >= deadlineMs;
  const apply = (event: FenceEvent): void => {
    state = nextFenceState(state, event);
    if (state.kind === "committing") {
      inFlight ??= settling();
      return;
    }
    inFlight?.resolve();
    inFlight = undefined;
  };
  const begin = (): Commit | undefined => {
    if (state.kind !== "open") return undefined;
    const commitNumber = ++commitCount;
    apply({ kind: "begin", commitNumber, isLate: isLate() });
    if (inFlight === undefined) return undefined;
    const finish = (): void => apply({ kind: "finish", commitNumber });
    return { finish, [Symbol.dispose]: finish };
  };

  return {
    begin,
    cancelPending: () => apply({ kind: "cancel" }),
    revoke: () => apply({ kind: "revoke" }),
    settled: () => inFlight?.done ?? Promise.resolve(),
    get commitInFlight() {
      return state.kind === "committing";
    },
    get refusal() {
      if (state.kind === "committing") return "committing";
      if (state.kind === "closed") return state.by;
      return isLate() ? "deadline" : undefined;
    },
  };
}
