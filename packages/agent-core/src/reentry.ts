import { AsyncLocalStorage } from "node:async_hooks";
import { CodedError } from "@turnkeeper/kernel";

/** A turn that waits for something it called. Ids alone: a context is kept by every promise it ever made. */
interface WaitingTurn {
  readonly sessionId: string;
  isOver: boolean;
}

/** The turns that wait, one for the other, for whatever runs here. */
export type TurnChain = readonly WaitingTurn[];

const within = new AsyncLocalStorage<TurnChain>();

/** The turns that wait for what is called here. */
export function callingTurns(): TurnChain {
  return within.getStore() ?? [];
}

/**
 * Runs on behalf of the callers that wait for it, whoever happens to start it: what runs turns for many callers is
 * started by one of them, and outlives it.
 */
export function onBehalfOf<Result>(callers: TurnChain, run: () => Result): Result {
  return within.run(callers, run);
}

/** Runs what a turn of `sessionId` calls and waits for; what it leaves behind may ask for that turn's session again. */
export async function insideTurn<Result>(sessionId: string, call: () => Result | Promise<Result>): Promise<Result> {
  const turn: WaitingTurn = { sessionId, isOver: false };
  try {
    return await within.run([...callingTurns(), turn], call);
  } finally {
    turn.isOver = true;
  }
}

/** Throws `TURN_REENTRANT` inside a turn of that session: a turn that waits for its own end waits for ever. */
export function refuseReentry(sessionId: string): void {
  if (!callingTurns().some((turn) => turn.sessionId === sessionId && !turn.isOver)) return;
  throw new CodedError(
    "TURN_REENTRANT",
    `A tool of a turn on session ${sessionId} asked for another turn on it and would wait for its own end. Use another session, or offer the message with onBusy queue or steer.`,
    { context: { sessionId } },
  );
}
