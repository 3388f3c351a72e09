import { readTurnStatus } from "@turnkeeper/agent-core";
import type { TurnStatus } from "@turnkeeper/agent-core";
import type { Holder, LeaseView, PendingInput, RunningTurn, Runner, StateStore } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { printable } from "./display/style.ts";
import { secondsText } from "./display/tool-line.ts";

/** Whether a holder or runner still works: `leaked` when its process lives and knows nothing of it. */
export type Pulse = "alive" | "dead" | "leaked" | "unknown";

const pulses = { active: "alive", dead: "dead", "unknown-here": "leaked", unknown: "unknown" } as const;

export interface WaitingInput {
  readonly input: PendingInput;
  readonly pulse?: Pulse;
}

/** What the store and the liveness sockets know of a session at this moment. */
export interface SessionState {
  readonly sessionId: string;
  readonly lease?: LeaseView;
  readonly holderPulse?: Pulse;
  readonly turn?: RunningTurn;
  /** The turn's newest stored step. */
  readonly lastStep?: { readonly what: string; readonly atMs: number };
  /** What its process says it is doing; absent where that cannot be asked. */
  readonly status?: TurnStatus;
  readonly waiting: readonly WaitingInput[];
}

export async function pulseOf(presence: ProcessPresence, who: Holder | Runner): Promise<Pulse> {
  return pulses[await presence.probe(who, "holderId" in who ? who.holderId : who.runnerId)];
}

async function lastStepOf(store: StateStore, turn: RunningTurn): Promise<SessionState["lastStep"]> {
  const { entries } = await store.transcript.load(turn.sessionId, { turnId: turn.turnId, all: true, limit: 1 });
  const entry = entries.at(-1);
  if (!entry) return undefined;
  const { body } = entry;
  const what = {
    user: "took its input",
    assistant: "a model answer",
    tool: "a tool result",
    summary: "a summary",
    notice: "a notice",
  }[body.role];
  return { what: body.role === "tool" ? `${what} (${body.name})` : what, atMs: entry.atMs };
}

/** Reads everything anew; nothing is changed, settled or woken by it. */
export async function readSessionState(
  deps: { readonly store: StateStore; readonly presence: ProcessPresence },
  sessionId: string,
): Promise<SessionState> {
  const { store, presence } = deps;
  const [lease, pending, running] = await Promise.all([
    store.leases.read(sessionId),
    store.inbox.pending(sessionId),
    store.turns.running(sessionId),
  ]);
  const turn = running[0]?.turn;
  const waiting = await Promise.all(
    pending.map(async (input): Promise<WaitingInput> => ({
      input,
      ...(input.runner ? { pulse: await pulseOf(presence, input.runner) } : {}),
    })),
  );
  const lastStep = turn && (await lastStepOf(store, turn));
  const told = lease && turn && (await readTurnStatus({ presence }, lease.holder));
  // Between the two reads another turn may have begun.
  const status = told?.turnId === turn?.turnId ? told : undefined;
  return {
    sessionId,
    ...(lease ? { lease, holderPulse: await pulseOf(presence, lease.holder) } : {}),
    ...(turn ? { turn } : {}),
    ...(lastStep ? { lastStep } : {}),
    ...(status ? { status } : {}),
    waiting,
  };
}

/** Whether a lease stands in the way of nobody: whoever comes next settles its turn and goes on. */
function isLeft({ lease, holderPulse }: SessionState): boolean {
  return lease !== undefined && (lease.standing === "expired" || holderPulse === "dead" || holderPulse === "leaked");
}

const who = (input: PendingInput): string =>
  input.runner ? `pid ${input.runner.pid} on ${input.runner.host}` : "whoever runs the session next";

/** In how many milliseconds the watchdog stops the turn unless it moves; absent when it is off or cannot be asked. */
export function stopsInMs({ status }: SessionState): number | undefined {
  if (status?.timeoutMs === undefined) return undefined;
  return Math.max(0, status.timeoutMs - status.idleMs, ...status.waits.map(({ endsInMs }) => endsInMs));
}

/** What will happen on the session if nobody does anything, in one sentence or two. */
export function whatIsNext(state: SessionState): string {
  const { lease, turn, waiting, sessionId } = state;
  const live = waiting.find(({ input, pulse }) => input.runner !== undefined && pulse !== "dead" && pulse !== "leaked");
  const after = live
    ? ` Then ${who(live.input)} runs input ${live.input.inputId}.`
    : waiting.length > 0
      ? " Then its process runs what waits."
      : "";
  const start = `start one with: turnkeeper run --session ${sessionId} "…"`;
  if (isLeft(state)) {
    const why =
      lease?.standing === "expired"
        ? "The lease ran out"
        : state.holderPulse === "dead"
          ? "Its process has died"
          : "Its process has forgotten it";
    return `${why}: whoever runs this session next settles the turn as crashed and goes on at once.${live ? ` That is ${who(live.input)}.` : ` Nobody waits; ${start}.`}`;
  }
  if (lease && state.holderPulse === "unknown" && !turn?.stop) {
    const end = lease.standing === "live" ? ` in ${secondsText(lease.expiresInMs)}` : "";
    return `Its process does not answer: it is stopped, busy, or out of reach. If it renews, the turn goes on; if not, the lease runs out${end} and whoever runs this session next settles the turn as crashed.${after}`;
  }
  if (lease) {
    const approval = state.status?.waits.find(({ kind }) => kind === "approval");
    if (approval && !turn?.stop)
      return `The turn waits for somebody to allow or deny ${printable(approval.name)}, at most ${secondsText(approval.endsInMs)} more.${after}`;
    const silenceMs = stopsInMs(state);
    const unless = silenceMs === undefined ? "" : ` Without progress it is stopped in ${secondsText(silenceMs)}.`;
    const ends = turn?.stop ? "The turn is being stopped." : `The turn goes on to its end.${unless}`;
    return `${ends}${after}`;
  }
  if (live) return `${who(live.input)} runs input ${live.input.inputId} now.`;
  if (waiting.length > 0) return `Nothing runs. What waits is run by the next process that uses the session; ${start}.`;
  return `Nothing runs and nothing waits; ${start}.`;
}
