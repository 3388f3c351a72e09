import { unansweredCalls } from "@turnkeeper/state-store";
import type { JsonValue, OpenTurn, StateStore, SuspendedTurn } from "@turnkeeper/state-store";
import type { TurnEventBody } from "./events.ts";

/** Subagents under subagents; what lies deeper is told by the turns between. */
const depthMax = 8;

export type ApprovalRequested = Extract<TurnEventBody, { type: "approval.requested" }>;

async function inputsOf(store: StateStore, { sessionId, turnId }: OpenTurn): Promise<ReadonlyMap<string, JsonValue>> {
  const { entries } = await store.transcript.load(sessionId, { turnId, all: true });
  const parts = entries.flatMap(({ body }) => (body.role === "assistant" ? body.parts : []));
  return new Map(parts.flatMap((part) => (part.type === "tool-call" ? [[part.callId, part.input] as const] : [])));
}

/** The suspended turns of the subagents that a suspended turn waits for. */
export async function awaitedTurns(store: StateStore, turn: SuspendedTurn): Promise<readonly SuspendedTurn[]> {
  const children = unansweredCalls(turn).flatMap(({ child }) => child ?? []);
  const views = await Promise.all(children.map(({ sessionId }) => store.turns.running(sessionId)));
  return views.flatMap(([view]) => (view?.turn.state === "suspended" ? [view.turn] : []));
}

/**
 * What people are to allow or deny before a suspended turn goes on, as its callers are told: its own calls that nobody
 * has decided on, and those of the subagents that it waits for. `isNew` keeps away what was told before.
 */
export async function readQuestions(
  store: StateStore,
  turn: SuspendedTurn,
  isNew: (question: Pick<ApprovalRequested, "callId" | "childSessionId" | "childTurnId">) => boolean,
): Promise<readonly ApprovalRequested[]> {
  const questions: ApprovalRequested[] = [];
  const read = async (at: SuspendedTurn, depth: number): Promise<void> => {
    const whose = depth === 0 ? {} : { childSessionId: at.sessionId, childTurnId: at.turnId };
    const asked = unansweredCalls(at).filter(({ callId, child }) => !child && isNew({ callId, ...whose }));
    const inputs = asked.length > 0 ? await inputsOf(store, at) : undefined;
    for (const { callId, name, resultUntilMs } of asked) {
      const input = inputs?.get(callId) ?? null;
      const awaits = resultUntilMs === undefined ? {} : { awaits: "result" as const };
      questions.push({ type: "approval.requested", callId, name, input, ...whose, ...awaits });
    }
    if (depth === depthMax) return;
    for (const child of await awaitedTurns(store, at)) await read(child, depth + 1);
  };
  await read(turn, 0);
  return questions;
}
