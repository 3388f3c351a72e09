import { unansweredCalls } from "@turnkeeper/state-store";
import type { OpenTurn, PendingInput } from "@turnkeeper/state-store";
import type { SessionState, TurnStatus } from "@turnkeeper/agent-core";
import { secondsText } from "./seconds-text.ts";

const who = ({ runner }: PendingInput): string =>
  runner ? `pid ${runner.pid} on ${runner.host}` : "whoever runs the session next";

const isNoAnswer = "does not answer: it is stopped, busy, or out of reach";

/**
 * Who goes on once the session is free: a waiter that lives; else whoever has the session, with what nobody else runs;
 * else one that gives no answer, and is passed over until it does.
 */
type Successor = { readonly kind: "waiter" | "silent"; readonly input: PendingInput } | { readonly kind: "orphans" };

function successorOf({ waiting }: SessionState): Successor | undefined {
  const first = (wanted: string): PendingInput | undefined =>
    waiting.find(({ input, pulse }) => input.runner !== undefined && pulse === wanted)?.input;
  const waiter = first("alive");
  if (waiter) return { kind: "waiter", input: waiter };
  // What tells of a subagent's end asks for no turn.
  if (waiting.some(({ input, pulse }) => input.child === undefined && pulse !== "unknown")) return { kind: "orphans" };
  const silent = first("unknown");
  return silent && { kind: "silent", input: silent };
}

/** Whether a lease stands in the way of nobody: whoever comes next settles its turn and goes on. */
function isLeft({ lease, holderPulse }: SessionState): boolean {
  return lease !== undefined && (lease.standing === "expired" || holderPulse === "dead" || holderPulse === "leaked");
}

/** In how many milliseconds the watchdog stops the turn unless it moves; absent when it is off or cannot be asked. */
export function stopsInMs(status: TurnStatus | undefined): number | undefined {
  if (status?.timeoutMs === undefined) return undefined;
  return Math.max(0, status.timeoutMs - status.idleMs, ...status.waits.map(({ endsInMs }) => endsInMs));
}

/** Nobody holds a turn that waits for approval, or for results of its client's; it is resumed ahead of everything that waits. */
function whenSuspended(turn: OpenTurn, startOne: string): string {
  const open = unansweredCalls(turn);
  const children = open.flatMap(({ child }) => (child ? [child.sessionId] : []));
  const handed = open.flatMap(({ resultUntilMs }) => (resultUntilMs === undefined ? [] : [resultUntilMs]));
  const openCount = open.length - children.length - handed.length;
  if (open.length === 0)
    return `All that the turn asked is answered: the next process that uses the session goes on with it; ${startOne}`;
  const answers = openCount === 1 ? "somebody allows or denies it" : `all ${openCount} calls are allowed or denied`;
  const isOne = children.length === 1;
  const ends = `${isOne ? "the subagent in session" : "the subagents in sessions"} ${children.join(", ")}, which ${isOne ? "waits" : "wait"} for approval, ${isOne ? "has" : "have"} ended`;
  const brought = `its client sends ${handed.length === 1 ? "the result of its call" : `the results of its ${handed.length} calls`}`;
  const conditions = [
    ...(handed.length > 0 ? [brought] : []),
    ...(openCount > 0 ? [answers] : []),
    ...(children.length > 0 ? [ends] : []),
  ].join(", and ");
  if (handed.length === 0) return `The turn waits until ${conditions}, however long that takes.`;
  const until = new Date(Math.min(...handed)).toISOString();
  return `The turn waits until ${conditions}; without the client's part it is stopped at ${until}.`;
}

function whenFree(state: SessionState, startOne: string): string {
  if (state.turn?.state === "suspended") return whenSuspended(state.turn, startOne);
  const next = successorOf(state);
  switch (next?.kind) {
    case "waiter":
      return `${who(next.input)} runs input ${next.input.inputId} now.`;
    case "orphans":
      return `Nothing runs. What waits is run by the next process that uses the session; ${startOne}`;
    case "silent":
      return `Nothing runs. Input ${next.input.inputId} waits for ${who(next.input)}, which ${isNoAnswer}; it goes on once it answers. Others need not wait for it; ${startOne}`;
    case undefined:
      return `Nothing runs and nothing waits; ${startOne}`;
  }
}

function whenLeft(state: SessionState, startOne: string): string {
  const why =
    state.lease?.standing === "expired"
      ? "The lease ran out"
      : state.holderPulse === "dead"
        ? "Its process has died"
        : "Its process has forgotten it";
  const next = successorOf(state);
  const nobody = next ? "No process that answers waits for it" : "Nobody waits";
  const taker = next?.kind === "waiter" ? `That is ${who(next.input)}.` : `${nobody}; ${startOne}`;
  return `${why}: whoever runs this session next settles the turn as crashed and goes on at once. ${taker}`;
}

/** What comes after the turn that holds the session, as a further sentence. */
function afterwards(state: SessionState): string {
  const next = successorOf(state);
  switch (next?.kind) {
    case "waiter":
      return ` Then ${who(next.input)} runs input ${next.input.inputId}.`;
    case "orphans":
      return " Then its process runs what waits.";
    case "silent":
      return ` Then ${who(next.input)} runs input ${next.input.inputId}, if it answers again: it does not now.`;
    case undefined:
      return "";
  }
}

function whenHeldInSilence(state: SessionState): string {
  const { lease, turn } = state;
  const end = lease?.standing === "live" ? ` in ${secondsText(lease.expiresInMs)}` : "";
  const revived = turn?.stop ? "If it goes on, the turn ends as it was asked to" : "If it renews, the turn goes on";
  return `Its process ${isNoAnswer}. ${revived}; if not, the lease runs out${end} and whoever runs this session next settles the turn as crashed.${afterwards(state)}`;
}

function whenHeld(state: SessionState): string {
  const { turn } = state;
  const after = afterwards(state);
  if (turn?.stop) return `The turn is being stopped.${after}`;
  const silenceMs = stopsInMs(state.status);
  const unless = silenceMs === undefined ? "" : ` Without progress it is stopped in ${secondsText(silenceMs)}.`;
  return `The turn goes on to its end.${unless}${after}`;
}

/** What will happen on the session if nobody does anything, in a few sentences; `startOne` says how a turn is begun. */
export function whatIsNext(state: SessionState, startOne: string): string {
  if (!state.lease) return whenFree(state, startOne);
  if (isLeft(state)) return whenLeft(state, startOne);
  return state.holderPulse === "unknown" ? whenHeldInSilence(state) : whenHeld(state);
}
