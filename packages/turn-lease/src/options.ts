import { CodedError } from "@turnkeeper/kernel";
import type { AcquireRequest, Holder, Runner, SuspendedTurn } from "@turnkeeper/state-store";

/** What a waiter knows of its waiting. */
export interface WaitingView {
  /** Who holds the session, or who is first in its queue. */
  readonly holder?: Holder | Runner;
  /** The turn that waits for approval, and occupies the session without a holder. */
  readonly suspended?: SuspendedTurn;
  readonly elapsedMs: number;
}

export interface TurnLeaseOptions {
  /** How long the grant stands without a renewal, in milliseconds by the store's clock. Default 300,000. */
  readonly ttlMs?: number;
  /** How old a grant gets before it is renewed, in milliseconds. Default 60,000. */
  readonly renewEveryMs?: number;
  /** How long to wait for the session, in milliseconds of being refused; 0 asks once. Default 1,800,000. */
  readonly waitMs?: number;
  /** How often a waiter looks at the lease where no wake-up reaches it, in milliseconds. Default 250. */
  readonly pollMs?: number;
  /** Stops the waiting at once. */
  readonly signal?: AbortSignal;
  /**
   * Begins a turn in the granting transaction, with the oldest input that this runner may run; with `resumes` it goes on
   * with a suspended turn whose calls are all answered instead.
   */
  readonly begin?: AcquireRequest["begin"];
  /**
   * Whether this process can go on with a suspended turn now: its calls are answered, and it has what they need. Only
   * where `begin` resumes; a turn with which it cannot stays in the way, for whoever can. Default: with each.
   */
  readonly mayResume?: (turn: SuspendedTurn) => boolean;
  /** Whether there is evidence that the turn moves. `false` withholds a renewal, silently and reversibly. Default: yes. */
  readonly mayRenew?: () => boolean;
  /** Told at the first refusal and then at growing intervals. */
  readonly onWaiting?: (view: WaitingView) => void;
}

type Durations = Required<Pick<TurnLeaseOptions, "ttlMs" | "renewEveryMs" | "waitMs" | "pollMs">>;

export interface ResolvedTurnLeaseOptions extends Readonly<Durations> {
  /** A grant is believed in for `ttlMs` less this, so that belief ends before the store would grant anew. */
  readonly marginMs: number;
  readonly signal: AbortSignal | undefined;
  readonly begin: AcquireRequest["begin"];
  readonly mayResume: ((turn: SuspendedTurn) => boolean) | undefined;
  readonly mayRenew: () => boolean;
  readonly onWaiting: ((view: WaitingView) => void) | undefined;
}

export const turnLeaseDefaults: Readonly<Durations> = Object.freeze({
  // Long enough for a host that swaps or a debugger's pause; a dead holder is found by its socket long before.
  ttlMs: 300_000,
  // Four renewals may fail before the margin begins.
  renewEveryMs: 60_000,
  // Longer than most turns take; whoever wants an answer sooner says so.
  waitMs: 1_800_000,
  // Four cheap reads a second cover a wake-up that was lost; hand-over itself is an event.
  pollMs: 250,
});

/** A renewal may be late by a slot of the scheduler; the margin is never smaller than that. */
const renewalLatenessMs = 50;

const knownOptions = new Set([
  ...Object.keys(turnLeaseDefaults),
  "signal",
  "begin",
  "mayResume",
  "mayRenew",
  "onWaiting",
]);

function invalid(option: string, expectation: string, value: unknown, mostMs?: number): CodedError<"OPTION_INVALID"> {
  const message = `acquireTurnLease: option ${option} must be ${expectation}, got ${String(value)}.`;
  return new CodedError("OPTION_INVALID", message, {
    context: { option, ...(mostMs === undefined ? {} : { mostMs }) },
  });
}

function duration(options: TurnLeaseOptions, option: keyof Durations, leastMs: number): number {
  const value = options[option] ?? turnLeaseDefaults[option];
  if (Number.isFinite(value) && value >= leastMs) return value;
  throw invalid(option, `a finite number of milliseconds of at least ${leastMs}`, value);
}

/**
 * Throws the `OPTION_INVALID` that `acquireTurnLease` would reject with: for whoever takes the options now and acquires
 * later. Its context has the `option`, and for a `renewEveryMs` that is too long `mostMs`, the longest that `ttlMs` bears.
 */
export function checkTurnLeaseOptions(options: TurnLeaseOptions): void {
  resolveTurnLeaseOptions(options);
}

export function resolveTurnLeaseOptions(options: TurnLeaseOptions): ResolvedTurnLeaseOptions {
  for (const key of Object.keys(options)) {
    if (!knownOptions.has(key)) throw invalid(key, "absent (there is no such option)", key);
  }
  const ttlMs = duration(options, "ttlMs", 100);
  const renewEveryMs = duration(options, "renewEveryMs", 1);
  const marginMs = Math.max(ttlMs / 10, renewalLatenessMs);
  const mostMs = (ttlMs - marginMs) / 2;
  if (renewEveryMs > mostMs) {
    const expectation = `small enough for two renewals before the margin of ttlMs (at most ${mostMs})`;
    throw invalid("renewEveryMs", expectation, renewEveryMs, mostMs);
  }
  return Object.freeze({
    ttlMs,
    renewEveryMs,
    marginMs,
    waitMs: duration(options, "waitMs", 0),
    pollMs: duration(options, "pollMs", 10),
    signal: options.signal,
    begin: options.begin,
    mayResume: options.mayResume,
    mayRenew: options.mayRenew ?? (() => true),
    onWaiting: options.onWaiting,
  });
}
