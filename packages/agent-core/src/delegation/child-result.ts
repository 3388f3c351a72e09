import type { RunOutcome } from "../events.ts";

/** What a child came to. */
export interface ChildResult {
  /** Its session, which stays. */
  readonly sessionId: string;
  readonly outcome: RunOutcome;
  /** Its answer, or what it had said. */
  readonly text: string;
  readonly reason?: string;
  readonly detail?: string;
}

export function childResult(
  sessionId: string,
  end: Pick<ChildResult, "outcome" | "text"> & {
    readonly reason?: string | undefined;
    readonly detail?: string | undefined;
  },
): ChildResult {
  const { outcome, text, reason, detail } = end;
  return {
    sessionId,
    outcome,
    text,
    ...(reason === undefined ? {} : { reason }),
    ...(detail === undefined ? {} : { detail }),
  };
}
