import { AsyncLocalStorage } from "node:async_hooks";
import { CodedError } from "@turnkeeper/kernel";

/** The sessions whose turns this code runs inside of. Ids alone: a context is kept by every promise it ever made. */
const within = new AsyncLocalStorage<readonly string[]>();

/** Runs what a turn of `sessionId` calls, so that a turn it begins in turn is known to come from there. */
export function insideTurn<Result>(sessionId: string, call: () => Result): Result {
  return within.run([...(within.getStore() ?? []), sessionId], call);
}

/** Throws `TURN_REENTRANT` inside a turn of that session: a turn that waits for its own end waits for ever. */
export function refuseReentry(sessionId: string): void {
  if (!within.getStore()?.includes(sessionId)) return;
  throw new CodedError(
    "TURN_REENTRANT",
    `A tool of a turn on session ${sessionId} asked for another turn on it and would wait for its own end. Use another session, or offer the message with onBusy queue or steer.`,
    { context: { sessionId } },
  );
}
