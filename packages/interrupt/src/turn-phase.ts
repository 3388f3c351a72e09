import { CodedError } from "@turnkeeper/kernel";
import type { FaultReporter, InterruptErrorCode } from "./errors.ts";
import { createGuardedSignal } from "./guarded-signal.ts";
import type { GuardedSignal } from "./guarded-signal.ts";

/** What a turn is doing, as far as a redirect must know: a model request can be cut short, tools can only be asked. */
export type TurnPhaseKind = "model-request" | "tools";

/** One model request, or one batch of tool calls. */
export interface TurnPhase extends Disposable {
  /** Aborts on any stop of the turn (`INTERRUPTED`) and on a redirect (`REDIRECTED`); it dies with the phase. */
  readonly signal: AbortSignal;
  /** Ends the phase; its signal does not fire any more. Safe to repeat. */
  end(): void;
}

export interface TurnPhases {
  enter(kind: TurnPhaseKind): TurnPhase;
  has(kind: TurnPhaseKind): boolean;
  abort(kind: TurnPhaseKind, reason: CodedError<InterruptErrorCode>): void;
}

export function createTurnPhases(report: FaultReporter): TurnPhases {
  const open = new Map<GuardedSignal, TurnPhaseKind>();
  return {
    enter: (kind) => {
      const guarded = createGuardedSignal(`${kind} phase`, report);
      const end = (): void => void open.delete(guarded);
      open.set(guarded, kind);
      return { signal: guarded.signal, end, [Symbol.dispose]: end };
    },
    has: (kind) => [...open.values()].includes(kind),
    abort: (kind, reason) => {
      // Chosen before any listener runs: a phase that a listener enters in answer is not the one that was meant.
      const meant = Array.from(open.keys()).filter((guarded) => open.get(guarded) === kind);
      for (const guarded of meant) guarded.abort(reason);
    },
  };
}

export function redirectedError(): CodedError<InterruptErrorCode> {
  const message = "This phase was ended early because the user redirected the turn. Go on with the steers that wait.";
  return new CodedError("REDIRECTED", message);
}
