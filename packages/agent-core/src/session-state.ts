import { unansweredCalls } from "@turnkeeper/state-store";
import type {
  Holder,
  LeaseView,
  PendingInput,
  OpenTurn,
  OpenTurnView,
  Runner,
  StateStore,
  SuspendedTurn,
} from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { readTurnStatus } from "./turn-status.ts";
import type { TurnStatus } from "./turn-status.ts";

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
  /** When it was read, by the store's wall clock, which told all its other times. */
  readonly atMs: number;
  readonly lease?: LeaseView;
  readonly holderPulse?: Pulse;
  readonly turn?: OpenTurn;
  /** The turn's newest stored step. */
  readonly lastStep?: { readonly what: string; readonly atMs: number };
  /** What its process says it is doing; absent where that cannot be asked. */
  readonly status?: TurnStatus;
  readonly waiting: readonly WaitingInput[];
}

/** Never rejects; at most some 200 ms. */
export async function pulseOf(presence: ProcessPresence, who: Holder | Runner): Promise<Pulse> {
  return pulses[await presence.probe(who, "holderId" in who ? who.holderId : who.runnerId)];
}

async function lastStepOf(store: StateStore, turn: OpenTurn): Promise<SessionState["lastStep"]> {
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

/** A holder that knows nothing of a turn may have let it go since that was read: whoever wants to know looks again. */
const looksMax = 3;

/** Reads everything anew; nothing is changed, settled or woken by it. */
export async function readSessionState(
  deps: { readonly store: StateStore; readonly presence: ProcessPresence },
  sessionId: string,
): Promise<SessionState> {
  for (let look = 1; ; look++) {
    const state = await lookAtSession(deps, sessionId);
    if (state.holderPulse !== "leaked" || look === looksMax) return state;
    const lease = await deps.store.leases.read(sessionId);
    if (lease?.fencingToken === state.lease?.fencingToken) return state;
  }
}

async function lookAtSession(
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
    atMs: await store.sessions.nowMs(),
    ...(lease ? { lease, holderPulse: await pulseOf(presence, lease.holder) } : {}),
    ...(turn ? { turn } : {}),
    ...(lastStep ? { lastStep } : {}),
    ...(status ? { status } : {}),
    waiting,
  };
}

/** A turn that runs, with whether its process still works. */
export interface RunningTurnState extends OpenTurnView {
  /** Nobody holds it: `asks`, it waits for approval; `awaits-result`, only for the results of calls that its caller runs. */
  readonly pulse: Pulse | "asks" | "awaits-result";
  /** Since it began, in milliseconds of the store's wall clock. */
  readonly ageMs: number;
}

function waitOf(turn: SuspendedTurn): "asks" | "awaits-result" {
  const open = unansweredCalls(turn);
  return open.length > 0 && open.every(({ resultUntilMs }) => resultUntilMs !== undefined) ? "awaits-result" : "asks";
}

/** Every turn of the store that has not ended, oldest first. Nothing is changed, settled or woken by it. */
export async function readRunningTurns(deps: {
  readonly store: StateStore;
  readonly presence: ProcessPresence;
}): Promise<readonly RunningTurnState[]> {
  const running = await deps.store.turns.running();
  const nowMs = await deps.store.sessions.nowMs();
  const states = await Promise.all(
    running.map(async (read): Promise<RunningTurnState | undefined> => {
      const { turn } = read;
      const { sessionId, turnId } = turn;
      const view = { ...read, ageMs: Math.max(0, nowMs - turn.startedAtMs) };
      if (turn.state === "suspended") return { ...view, pulse: waitOf(turn) };
      const pulse = await pulseOf(deps.presence, turn.holder);
      if (pulse !== "leaked") return { ...view, pulse };
      // It may have ended since it was read.
      const now = await deps.store.turns.read(sessionId, turnId);
      return now?.state === "running" ? { ...view, pulse } : undefined;
    }),
  );
  return states.filter((state) => state !== undefined);
}
