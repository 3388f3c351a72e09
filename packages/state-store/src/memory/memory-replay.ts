import type { EntryDraft } from "../entry.ts";
import { digestOf } from "../json.ts";
import { fateOfStep, keyOfSpooled } from "../spool.ts";
import type { SpooledStep } from "../spool.ts";
import { pairingFault } from "./memory-drafts.ts";
import type { SessionRow } from "./memory-rows.ts";
import type { MemoryState } from "./memory-state.ts";

/** Brings back what the session's turns had produced when a store refused it; steps of unknown turns go on waiting. */
export function absorbSpool(state: MemoryState, sessionId: string): void {
  const session = state.sessions.get(sessionId);
  const steps = state.spool.get(sessionId);
  if (!session || !steps) return;
  const waiting = steps.filter((step) => absorbStep(state, session, step) === "waits");
  if (waiting.length > 0) state.spool.set(sessionId, waiting);
  else state.spool.delete(sessionId);
}

function absorbStep(state: MemoryState, session: SessionRow, step: SpooledStep): ReturnType<typeof fateOfStep> {
  const { turnId, settledInputs = [], end } = step;
  const turn = session.turns.get(turnId);
  const fate = fateOfStep(step, turn);
  if (fate === "waits") return fate;
  for (const draft of step.entries) absorbEntry(state, session, step, draft, fate === "joins");
  if (fate === "late") return fate;
  for (const { inputId, end: inputEnd } of settledInputs) {
    const record = session.inputs.get(inputId)?.record;
    if (record?.state === "pending" && record.child) state.settleNotice(session, record, turnId, inputEnd);
    if (record?.state === "taken" && record.turnId === turnId) state.settle(session, inputId, inputEnd);
  }
  if (end && turn?.state === "running") {
    state.closeTurn(session, turn, end);
    state.noteProcesses(turn, end.leavesProcesses);
  }
  return fate;
}

/** Stores an entry that is not there yet. Whatever does not fit the turn is late: a replay refuses nothing. */
function absorbEntry(
  state: MemoryState,
  session: SessionRow,
  { turnId, keptAtMs }: SpooledStep,
  draft: EntryDraft,
  mayJoin: boolean,
): void {
  const digest = digestOf(draft.body);
  const key = keyOfSpooled({ key: draft.key, digest }, mayJoin, (one) => session.digestByKey.get(one));
  if (key === undefined) return;
  const joins = key === draft.key && pairingFault(session, turnId, [draft]) === undefined;
  state.addEntries(session, turnId, [{ key, body: draft.body }], { atMs: keptAtMs, late: !joins });
}
