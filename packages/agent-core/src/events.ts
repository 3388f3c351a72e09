import type { CompactionCause, DeferralReason } from "./compaction/compactor.ts";
import type { JsonValue, LeaseView, TurnOutcome, Usage } from "@turnkeeper/state-store";

/** How a call to `run` came out; the last two are answers to the call, not ends of the input. */
export type RunOutcome = TurnOutcome | "cancelled" | "queued" | "busy";

/** Who holds a session, for people and programs. */
export type HolderView = Pick<LeaseView["holder"], "pid" | "host" | "instanceId">;

/** What happens in one call to `run`, in order. Every event has `type`, `sessionId`, `at` and, once there is one, `turnId`. */
export type TurnEventBody =
  | { readonly type: "input.accepted"; readonly inputId: string }
  /**
   * Somebody has the session. With `awaits` nobody holds it: its turn, which may be the call's own, waits for approval of
   * these calls, or for their subagents that wait for approval. With `keepsSession` it is held all the same: one of these
   * calls may not be given up (`mayRunAgain`).
   */
  | {
      readonly type: "turn.waiting";
      readonly holder?: HolderView;
      readonly awaits?: readonly string[];
      readonly keepsSession?: true;
      readonly elapsedMs: number;
    }
  /** With `resumes` it had begun before, was suspended, and goes on under this token. */
  | {
      readonly type: "turn.started";
      readonly fencingToken: number;
      readonly resumes?: true;
      /** Whose trace it belongs to, as its caller said; told to observers alone. */
      readonly traceParent?: string;
    }
  | { readonly type: "text.delta"; readonly text: string }
  | { readonly type: "reasoning.delta"; readonly text: string }
  | { readonly type: "tool.started"; readonly callId: string; readonly name: string; readonly input: JsonValue }
  | {
      readonly type: "tool.finished";
      readonly callId: string;
      readonly name: string;
      readonly ok: boolean;
      readonly output: JsonValue;
      readonly durationMs: number;
      /** What the model is told beside the output: that it repeats itself. */
      readonly note?: string;
    }
  /** An observation, never a verdict. */
  | { readonly type: "turn.stalled"; readonly idleMs: number; readonly lastProgress: string }
  | { readonly type: "turn.resumed" }
  /**
   * The turn is suspended until this call, and whatever else it asks about, is allowed or denied. With `childSessionId`
   * it is a subagent's turn: the answer goes there. With `awaits` nobody is asked to allow it: the turn's caller runs the
   * call, and answers with its result.
   */
  | {
      readonly type: "approval.requested";
      readonly callId: string;
      readonly name: string;
      readonly input: JsonValue;
      readonly childSessionId?: string;
      readonly childTurnId?: string;
      readonly awaits?: "result";
    }
  /** The call has a child, a session of its own: it is steered and stopped by that id. */
  | { readonly type: "child.started"; readonly callId: string; readonly childSessionId: string }
  | {
      readonly type: "child.finished";
      readonly callId: string;
      readonly childSessionId: string;
      readonly outcome: RunOutcome;
      readonly durationMs: number;
    }
  /**
   * A message that came while the turn ran is in the request that leaves now. With `childSessionId` it is what tells of
   * that subagent's end.
   */
  | { readonly type: "steer.delivered"; readonly inputId: string; readonly childSessionId?: string }
  /**
   * After `delayMs` the model is asked again: the call failed before anything of its answer came, or the answer was cut
   * and the rest of it is asked for.
   */
  | { readonly type: "model.retry"; readonly attempt: number; readonly delayMs: number; readonly reason: string }
  /** The model `from` cannot answer; for the rest of the turn `to` does, whose id stands with what it says. */
  | { readonly type: "model.fallback"; readonly from: string; readonly to: string; readonly reason: string }
  /** The conversation is being summarised: `entryCount` entries of about `usedTokens` tokens in all. */
  | {
      readonly type: "compaction.started";
      readonly cause: CompactionCause;
      readonly entryCount: number;
      readonly usedTokens: number;
      readonly windowTokens?: number;
    }
  /** A summary took the place of `entryCount` entries, which stay readable; tokens are estimates. */
  | {
      readonly type: "compaction.finished";
      readonly cause: CompactionCause;
      /** `fallback`: made without a model. */
      readonly method: "model" | "fallback";
      readonly entryCount: number;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
      readonly durationMs: number;
    }
  /** Nothing was replaced now; the conversation goes on as it is. */
  | {
      readonly type: "compaction.deferred";
      readonly cause: CompactionCause;
      readonly reason: DeferralReason;
      readonly detail: string;
      readonly retryInMs?: number;
    }
  | ({ readonly type: "usage" } & Usage)
  | {
      readonly type: "turn.finished";
      readonly outcome: RunOutcome;
      readonly text: string;
      readonly reason?: string;
      /** One line for people: what failed and what to do. */
      readonly detail?: string;
      /** The session was busy: the same call with the same input id may be made again. */
      readonly retryable?: true;
      /** Who stopped the turn, for people: `cli pid 4711`, `watchdog`. */
      readonly by?: string;
      readonly usage?: Usage;
    };

export type TurnEvent = TurnEventBody & {
  readonly sessionId: string;
  readonly turnId?: string;
  /** ISO 8601, UTC. */
  readonly at: string;
};

/** The last event of every call to `run`: exactly one. */
export type TurnFinished = Extract<TurnEvent, { type: "turn.finished" }>;
