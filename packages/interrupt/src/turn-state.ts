import type { InterruptOutcome, InterruptRecord } from "./interrupt-record.ts";

/** How far one turn has been stopped. It only ever moves down this list. */
export type TurnState =
  | { readonly kind: "running" }
  | { readonly kind: "stopped"; readonly record: InterruptRecord }
  /** Stopped softly, by whatever came first; a hard stop waits for a commit and will be published next. */
  | { readonly kind: "hardening"; readonly record: InterruptRecord }
  | { readonly kind: "finished"; readonly record: InterruptRecord | undefined };

/** The answer to a request that has nothing left to do in this state; `undefined` when it has. */
export function standingOf(state: TurnState, hard: boolean): InterruptOutcome | undefined {
  switch (state.kind) {
    case "running":
      return undefined;
    case "stopped":
      return state.record.hard || !hard ? "already-interrupted" : undefined;
    case "hardening":
      return "already-interrupted";
    case "finished":
      return "already-finished";
  }
}
