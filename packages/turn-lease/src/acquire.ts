import type { Host } from "@turnkeeper/kernel";
import type { PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type {
  Holder,
  InboxStore,
  LeaseStore,
  Predecessor,
  Runner,
  RunningTurn,
  TakenInput,
} from "@turnkeeper/state-store";
import { Admission } from "./admission.ts";
import type { TurnLease } from "./lease.ts";
import { resolveTurnLeaseOptions } from "./options.ts";
import type { TurnLeaseOptions } from "./options.ts";
import type { ProcessPresence } from "./presence.ts";

export interface TurnLeaseDeps {
  readonly store: LeaseStore;
  /** Where waiters queue; with it a dead waiter is taken out of the queue at once. */
  readonly inbox?: Pick<InboxStore, "abandon" | "pending">;
  readonly scheduler: Pick<PeriodicScheduler, "schedule">;
  readonly host: Host;
  readonly presence: ProcessPresence;
}

export interface GrantedLease {
  readonly kind: "granted";
  readonly lease: TurnLease;
  /** The transcript's revision: reload if and only if yours differs. */
  readonly revision: number;
  /** What the begun turn took, or the resumed one took first. */
  readonly input?: TakenInput;
  /** The turn that goes on in place of a new one. */
  readonly resumed?: RunningTurn;
  /** The turns before this one that did not end themselves, oldest first: end their processes before any side effect. */
  readonly predecessors?: readonly Predecessor[];
  readonly waitedMs: number;
}

export type TurnLeaseResult =
  | GrantedLease
  /** Refused for all of `waitMs`; by whom, last. */
  | { readonly kind: "busy"; readonly holder?: Holder | Runner; readonly waitedMs: number }
  /** `signal` aborted, and nothing is held. */
  | { readonly kind: "aborted"; readonly waitedMs: number }
  /** The session is free and nothing waits that this runner may run. Only with `begin`. */
  | { readonly kind: "nothing-to-run"; readonly waitedMs: number };

/**
 * Asks for the exclusive right to run this session's turn, and waits for it.
 *
 * A holder that is provably dead is reclaimed (LEASE-5); hand-over is an event, with a cheap look every `pollMs` for
 * the wake-up that was lost. `signal` settles it at once and leaves nothing acquired; only with `begin`, when a request
 * is on its way, the answer is waited for, and a turn that has begun is `granted` in spite of the abort. Rejects with
 * `OPTION_INVALID`, and with the store's error where the store fails for good; a busy store is asked again.
 */
export async function acquireTurnLease(
  deps: TurnLeaseDeps,
  sessionId: string,
  options: TurnLeaseOptions = {},
): Promise<TurnLeaseResult> {
  return await new Admission(deps, sessionId, resolveTurnLeaseOptions(options)).run();
}
