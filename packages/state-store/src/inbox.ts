/**
 * Everything that wants a turn, from the moment it was accepted to its end; and the queue of those who wait.
 *
 * Owns INBOX-1: an accepted input is settled exactly once or still pending, never neither, never twice.
 * Owns INBOX-2: the same input id is accepted once.
 * Whose turn it is decides `claim` in decisions.ts.
 *
 * | an input is | event | it becomes |
 * | --- | --- | --- |
 * | pending | a turn takes it: acquire, begin, takeSteers | taken |
 * | pending, a child's notice | an append that settles it | settled, without a user entry |
 * | pending | withdraw | settled without a turn; its id may be offered again |
 * | taken | an append that settles it, the end of its turn, a settlement by others | settled |
 * | settled by a turn | anything | as it was |
 */
import type { ChildEnd, ParentCall } from "./child.ts";
import type { Grant, Runner } from "./identity.ts";
import type { JsonValue } from "./json.ts";
import type { LeaseView } from "./lease.ts";
import type { SuspendedTurn } from "./turn.ts";

/** How an accepted input ended, for good. `queued` and `busy` are answers to a call, not ends. */
export type InputEnd = "answered" | "interrupted" | "failed" | "cancelled" | "expired";

/** What to do when the session is busy. */
export type OnBusy = "wait" | "reject" | "queue" | "steer" | "interrupt";

/** `turn`: asks for a turn of its own. `steer`: joins the running turn at its next checkpoint, else becomes a turn. */
export type Delivery = "turn" | "steer";

interface InputFacts {
  readonly sessionId: string;
  /** Unique in its session; the caller's idempotency key. */
  readonly inputId: string;
  /** Position in the queue: first come, first served. */
  readonly seq: number;
  readonly text: string;
  readonly digest: string;
  readonly delivery: Delivery;
  readonly offeredAtMs: number;
  /** The notice of a child's end, which the store wrote itself: it asks for no turn, and joins the next there is. */
  readonly child?: ChildEnd;
  /** What its turn is to be asked with, whoever runs it, as it was offered; never there once it is settled. */
  readonly settings?: JsonValue;
}

export interface PendingInput extends InputFacts {
  readonly state: "pending";
  /** Who alone will run it. Absent: an orphan, run by whoever has the session next. */
  readonly runner?: Runner;
}

export interface TakenInput extends InputFacts {
  readonly state: "taken";
  readonly turnId: string;
}

export interface SettledInput extends InputFacts {
  readonly state: "settled";
  /** Absent when it never reached a turn; then its id may be offered again. */
  readonly turnId?: string;
  readonly end: InputEnd;
  readonly endedAtMs: number;
}

/** An accepted input is pending, taken by one turn, or settled: never neither, never twice (INBOX-1). */
export type InputRecord = PendingInput | TakenInput | SettledInput;

export interface OfferRequest {
  readonly sessionId: string;
  readonly inputId: string;
  readonly text: string;
  readonly onBusy: OnBusy;
  readonly runner: Runner;
  /** A grant that the caller has proved dead: it does not count as busy. */
  readonly deadGrant?: Grant;
  /** Makes the session, which must be new or of the same parent, a child of this call. */
  readonly parent?: ParentCall;
  /** Kept with the input until it is settled, and opaque to the store. Of an input that is known the first ones stay. */
  readonly settings?: JsonValue;
  /** Behind so many inputs that want a turn of this session nothing is stored. Default: as many as come. */
  readonly queueLengthMax?: number;
}

/** Who has the session at the moment of an offer; both absent: nobody. */
export interface Occupation {
  readonly lease?: LeaseView;
  /** Its turn waits for answers, and nobody holds it. */
  readonly suspended?: SuspendedTurn;
}

export type OfferResult =
  /**
   * Stored. The input names the offerer as its runner unless the session was busy and `onBusy` was `queue` or `steer`;
   * then it is an orphan, and the offerer may leave.
   */
  | ({ readonly kind: "accepted"; readonly input: PendingInput } & Occupation)
  /**
   * The same id with the same text was accepted before (INBOX-2). An orphan is adopted,
   * the offerer is its runner now, unless the session is busy and `onBusy` says not to wait.
   */
  | ({ readonly kind: "known"; readonly input: InputRecord } & Occupation)
  /** The same id with other text: nothing stored, and the first input is untouched. */
  | { readonly kind: "conflict"; readonly input: InputRecord }
  /** `reject` on a busy session: nothing stored. `head` is the live waiter that made it busy, where no turn does. */
  | ({ readonly kind: "busy"; readonly head?: PendingInput } & Occupation)
  /** `queueLengthMax` inputs wait already: nothing stored. */
  | { readonly kind: "full"; readonly waitingCount: number };

export type WithdrawResult =
  | { readonly kind: "withdrawn" }
  /** A turn has it: follow that turn. */
  | { readonly kind: "taken"; readonly turnId: string }
  | { readonly kind: "settled"; readonly end: InputEnd; readonly turnId?: string }
  | { readonly kind: "unknown" };

/** Accepted inputs: everything that wants a turn enters here, and accepted means stored. */
export interface InboxStore {
  /** Stores an input before anybody is told it was accepted; makes the session where it is new. Keeps INBOX-2. */
  offer(request: OfferRequest): Promise<OfferResult>;
  read(sessionId: string, inputId: string): Promise<InputRecord | undefined>;
  /** What waits for a turn of this session, oldest first. A cheap read. */
  pending(sessionId: string): Promise<readonly PendingInput[]>;
  /** Sessions in which an input wants a turn, the one whose oldest has waited longest first. A cheap read. */
  waitingSessions(limit: number): Promise<readonly string[]>;
  /**
   * Gives the grant's turn every pending steer, before it enters a model request, and writes their user entries
   * (`takenEntry`). Answers the taken ones, oldest first, or `stale-token` with nothing taken.
   */
  takeSteers(
    grant: Grant,
    turnId: string,
  ): Promise<{ readonly kind: "taken"; readonly inputs: readonly TakenInput[] } | { readonly kind: "stale-token" }>;
  /** Ends a pending input that no turn has taken; anything else is left as it is and told. Safe to repeat. */
  withdraw(sessionId: string, inputId: string, end: "cancelled" | "expired"): Promise<WithdrawResult>;
  /**
   * Makes orphans of what this runner was to run in this session, or of the one input of it: it is dead, or it leaves.
   * The inputs keep their places. Answers how many there were.
   */
  abandon(sessionId: string, runnerId: string, inputId?: string): Promise<number>;
}
