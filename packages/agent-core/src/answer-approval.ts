import { unansweredCalls } from "@turnkeeper/state-store";
import type { AnswerRequest, AnswerResult, CallDecision, JsonValue } from "@turnkeeper/state-store";
import type { TurnDeps } from "./turn-machinery.ts";

export interface ApprovalAnswer {
  readonly decision: CallDecision;
  /** Only a call of this turn. Default: whichever turn asks now. */
  readonly turnId?: string;
  /** Who decides, for people. Default: this process. */
  readonly by?: string;
  /**
   * With `allow`: the result of the call, which whoever answers has run. For the tools of a caller; any other is not
   * run then either.
   */
  readonly output?: JsonValue;
}

export type ApprovalOutcome =
  | (Extract<AnswerResult, { kind: "recorded" }> & {
      /** The calls of the turn that still wait for an answer. */
      readonly openCallIds: readonly string[];
      /** Whether the process that asked lives, and goes on with the turn; else the next that uses the session does. */
      readonly isResumed: boolean;
    })
  | Exclude<AnswerResult, { kind: "recorded" }>;

/**
 * Answers a call that a suspended turn asks about, from whatever process, and wakes the one that asked. The first answer
 * counts. Safe to repeat.
 */
export async function answerApproval(
  deps: Pick<TurnDeps, "store" | "presence">,
  request: AnswerRequest,
): Promise<ApprovalOutcome> {
  const result = await deps.store.turns.answer(request);
  if (result.kind !== "recorded") return result;
  const { turn } = result;
  const openCallIds = unansweredCalls(turn).map(({ callId }) => callId);
  if (openCallIds.length > 0) return { ...result, openCallIds, isResumed: false };
  const heard = await deps.presence.wake(turn.holder, turn.sessionId);
  return { ...result, openCallIds, isResumed: heard === "woken" };
}
