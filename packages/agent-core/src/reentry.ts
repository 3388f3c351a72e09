import { AsyncLocalStorage } from "node:async_hooks";
import { CodedError } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { parentsOf } from "./delegation/waiting-parents.ts";

/** A turn that waits for something it called. Ids alone: a context is kept by every promise it ever made. */
interface WaitingTurn {
  readonly sessionId: string;
  isOver: boolean;
}

/** The turns that wait, one for the other, for whatever runs here. */
export type TurnChain = readonly WaitingTurn[];

const within = new AsyncLocalStorage<TurnChain>();

/**
 * What turns call and wait for, right now. While there is none, each turn of any chain is over and none is asked for. Then
 * the contexts are off: before Node 24 one that is on has every promise of the process followed, which is an eighth of what
 * a streamed answer takes.
 */
let insideCount = 0;

/** The turns that wait for what is called here. */
export function callingTurns(): TurnChain {
  return within.getStore() ?? [];
}

/**
 * Runs on behalf of the callers that wait for it, whoever happens to start it: what runs turns for many callers is
 * started by one of them, and outlives it.
 */
export function onBehalfOf<Result>(callers: TurnChain, run: () => Result): Result {
  if (callers.length === 0 && callingTurns().length === 0) return run();
  return within.run(callers, run);
}

/** Runs what a turn of `sessionId` calls and waits for; what it leaves behind may ask for that turn's session again. */
export async function insideTurn<Result>(sessionId: string, call: () => Result | Promise<Result>): Promise<Result> {
  const turn: WaitingTurn = { sessionId, isOver: false };
  insideCount++;
  try {
    return await within.run([...callingTurns(), turn], call);
  } finally {
    turn.isOver = true;
    if (--insideCount === 0) within.disable();
  }
}

/** A call that turns wait for, while it is neither ended nor left to others. */
interface Wait {
  readonly callers: TurnChain;
  /** Whose turn must end, or run, for the call to end. */
  readonly sessionId: string;
}

const waits = new Set<Wait>();

/** Says that whatever turns call from here wait for `sessionId`, until disposed. */
export function beginWait(sessionId: string): Disposable {
  const wait: Wait = { callers: callingTurns(), sessionId };
  if (wait.callers.length > 0) waits.add(wait);
  return { [Symbol.dispose]: () => void waits.delete(wait) };
}

/** `sessionId`, and every session that its running turn waits for, over however many turns of this process. */
function awaitedOver(sessionId: string): ReadonlySet<string> {
  const awaited = new Set([sessionId]);
  // What is added on the way is visited, too.
  for (const one of awaited) {
    for (const wait of waits)
      if (wait.callers.some((turn) => turn.sessionId === one && !turn.isOver)) awaited.add(wait.sessionId);
  }
  return awaited;
}

function reentrant(own: string, sessionId: string): CodedError {
  const over = own === sessionId ? "" : `, which waits for one on ${own} itself,`;
  return new CodedError(
    "TURN_REENTRANT",
    `A tool of a turn on session ${own} asked for another turn on ${over === "" ? "it" : `session ${sessionId}`}${over} and would wait for its own end. Use another session, or offer the message with onBusy queue or steer.`,
    { context: { sessionId } },
  );
}

/**
 * Throws `TURN_REENTRANT` inside a turn of that session, or of one that the session's own turn waits for here: a turn that
 * waits for its own end waits for ever.
 */
export function refuseReentry(sessionId: string): void {
  const callers = callingTurns().filter((turn) => !turn.isOver);
  if (callers.length === 0) return;
  const awaited = awaitedOver(sessionId);
  const own = callers.find((turn) => awaited.has(turn.sessionId));
  if (!own) return;
  throw reentrant(own.sessionId, sessionId);
}

/**
 * Rejects so where a parent waits for the child that calls, in whatever process it does: what the store knows. What a tool
 * in another process waits for beside its children is known there alone.
 */
export async function refuseWaitForParent(
  store: Pick<StateStore, "sessions" | "turns" | "transcript">,
  callers: TurnChain,
  sessionId: string,
): Promise<void> {
  const awaited = awaitedOver(sessionId);
  for (const caller of callers) {
    if (caller.isOver) continue;
    const parent = (await parentsOf(store, caller.sessionId)).find((one) => awaited.has(one));
    if (parent !== undefined) throw reentrant(parent, sessionId);
  }
}
