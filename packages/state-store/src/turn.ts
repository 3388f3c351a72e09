import type { AnswerRequest, AnswerResult, AskedCall, SuspendRequest, SuspendResult } from "./approval.ts";
import type { EntryDraft, Usage } from "./entry.ts";
import type { Grant, Holder } from "./identity.ts";
import type { TakenInput } from "./inbox.ts";
import type { HandOver, LeaseView } from "./lease.ts";

export type TurnOutcome = "answered" | "interrupted" | "failed";

/** Why a turn was interrupted, or the code of what it failed with. */
export type InterruptReason =
  | "user-stop"
  | "user-message"
  | "stalled"
  | "lease-lost"
  | "deadline"
  | "shutdown"
  | "parent"
  | "crashed";

export interface StopRequest {
  readonly hard: boolean;
  readonly reason: InterruptReason;
  /** Who asked, for people: "cli pid 4711", "http". */
  readonly by: string;
  readonly atMs: number;
}

interface TurnFacts {
  readonly sessionId: string;
  readonly turnId: string;
  /** Of the grant it runs under, or ran under last: a turn that is resumed has a new one. */
  readonly fencingToken: number;
  readonly holder: Holder;
  readonly startedAtMs: number;
  /** The calls that somebody was asked about, in the order of asking; absent where there were none. */
  readonly approvals?: readonly AskedCall[];
}

export interface RunningTurn extends TurnFacts {
  readonly state: "running";
  readonly stop?: StopRequest;
}

/**
 * Its open calls wait for answers, and nobody holds it: no lease, nothing to renew, nothing to reap. It still occupies
 * its session. Once all are answered the next grant that may resume it does; a stop ends it at once.
 */
export interface SuspendedTurn extends TurnFacts {
  readonly state: "suspended";
  readonly suspendedAtMs: number;
  readonly approvals: readonly AskedCall[];
  /** What it had used by then. */
  readonly usage?: Usage;
  /** A stop ends it instead of being written on it. */
  readonly stop?: never;
}

/** A turn that has not ended. */
export type OpenTurn = RunningTurn | SuspendedTurn;

export interface EndedTurn extends TurnFacts {
  readonly state: "ended";
  readonly outcome: TurnOutcome;
  /** An `InterruptReason` for `interrupted`, an error code for `failed`. */
  readonly reason?: string;
  /** One line for people: why it was stopped, what failed. */
  readonly detail?: string;
  /** What stopped it, where something did: who asked, and when. */
  readonly stop?: StopRequest;
  readonly usage?: Usage;
  readonly endedAtMs: number;
}

export type TurnRecord = OpenTurn | EndedTurn;

/** A turn that somebody other than its holder settled. */
export interface SettledTurn {
  readonly turn: EndedTurn;
  readonly inputIds: readonly string[];
  /** The calls that were open: their results say `outcome unknown`, or `not run` where the turn was suspended. */
  readonly openCallIds: readonly string[];
}

/** A turn that did not end itself, or not what it started: on the holder's host that may still run. */
export interface Predecessor {
  readonly turnId: string;
  readonly holder: Holder;
}

export interface EndRequest {
  readonly grant: Grant;
  readonly turnId: string;
  readonly outcome: TurnOutcome;
  readonly reason?: string;
  readonly detail?: string;
  readonly stop?: StopRequest;
  readonly usage?: Usage;
  /** The last entries. Calls they leave open are closed by the store with `outcome unknown`. */
  readonly entries?: readonly EntryDraft[];
  /**
   * Processes of this turn, or of those before it, could not be ended: it joins its predecessors, and later grants are
   * told of all of them. Absent: none may run any more, and all are forgotten.
   */
  readonly leavesProcesses?: boolean;
  /** Frees the lease in the same transaction. */
  readonly release: boolean;
}

export type EndResult =
  | ({ readonly kind: "ended"; readonly revision: number } & HandOver)
  | { readonly kind: "stale-token" };

export type SettleForeignResult =
  | ({ readonly kind: "settled"; readonly turn?: SettledTurn } & HandOver)
  /** The grant no longer stands as it was judged: nothing changed. */
  | { readonly kind: "changed" };

export type RequestStopResult =
  | { readonly kind: "requested"; readonly turn: RunningTurn }
  /** The turn was suspended: nobody had to be asked, and it has ended. */
  | ({ readonly kind: "stopped"; readonly settled: SettledTurn } & HandOver)
  | { readonly kind: "nothing-running" };

export interface OpenTurnView {
  readonly turn: OpenTurn;
  readonly lease?: LeaseView;
  readonly pendingCount: number;
  /** It waits for results that did not come in time, by the store's clock: `stopOverdue` ends it. */
  readonly isOverdue?: true;
}

export interface TurnStore {
  /**
   * Begins a turn under a grant already held, or takes more inputs into it and writes their user entries
   * (`takenEntry`). Inputs already taken by it are answered again. `not-pending`: nothing was begun or taken.
   */
  begin(
    grant: Grant,
    turnId: string,
    inputIds: readonly string[],
  ): Promise<
    | { readonly kind: "begun"; readonly inputs: readonly TakenInput[] }
    | { readonly kind: "stale-token" }
    | { readonly kind: "not-pending"; readonly inputId: string }
  >;
  /**
   * Ends the turn in one transaction: last entries, a result for every open call, the turn's outcome as the end of
   * every input it still holds, and, with `release`, the lease. Safe to repeat (PAIR-1, INBOX-1, APPEND-1).
   */
  end(request: EndRequest): Promise<EndResult>;
  /**
   * Settles a grant whose holder was judged dead or expired, conditional on that grant still standing: raises the
   * token, closes calls with `outcome unknown`, ends turn and inputs as `interrupted` (`crashed`), frees the lease.
   */
  settleForeign(grant: Grant): Promise<SettleForeignResult>;
  read(sessionId: string, turnId: string): Promise<TurnRecord | undefined>;
  /** Every turn that has not ended, suspended ones too, oldest first; of one session where it is named. */
  running(sessionId?: string): Promise<readonly OpenTurnView[]>;
  /**
   * Suspends the turn until its calls are answered, and frees the session's lease, in one transaction: the turn must
   * hold an input, and the calls be open and never asked about. Safe to repeat. Rejects with `STORE_CONTRACT`.
   */
  suspend(request: SuspendRequest): Promise<SuspendResult>;
  /** Answers a call that a suspended turn asks about; the first answer counts. */
  answer(request: AnswerRequest): Promise<AnswerResult>;
  /**
   * Finds the turn that has not ended and writes the request on it, in one transaction; a later one may harden it,
   * never soften it. A suspended one ends so at once: its calls did not run, its inputs are interrupted. With
   * `fencingToken` only the turn of that grant is meant, and any other is left alone.
   */
  requestStop(sessionId: string, stop: Omit<StopRequest, "atMs">, fencingToken?: number): Promise<RequestStopResult>;
  /**
   * Ends a suspended turn whose caller has not brought the result of a call in time, as a stop would; one that has its
   * results, or time left by the store's clock, is left alone and answered `nothing-running`. Safe to repeat, anywhere.
   */
  stopOverdue(sessionId: string): Promise<Extract<RequestStopResult, { kind: "stopped" | "nothing-running" }>>;
  /** What was asked of this turn. A cheap read, fit for polling. */
  stopRequest(sessionId: string, turnId: string): Promise<StopRequest | undefined>;
}
