/** The steps that several ports share: taking an input, ending a turn, handing a session over. */
import { endByStop, firstWaiter, resultOfOpenCall, takenEntry, wantsTurn } from "@turnkeeper/state-store";
import type {
  Grant,
  HandOver,
  InputEnd,
  PendingInput,
  SettledTurn,
  StopRequest,
  TakenInput,
} from "@turnkeeper/state-store";
import { endUnbegunChildren, tellParent } from "./child-rows.ts";
import { addEntries, forgetCalls, openCalls, ownDraft } from "./entry-rows.ts";
import { markSettled, markTaken, queueOf, takenBy, wakeInput } from "./input-rows.ts";
import { forgetPredecessors, rememberPredecessor } from "./lease-rows.ts";
import { touchSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { storeError } from "./store-failure.ts";
import type { Transaction } from "./transaction.ts";
import { approvalsOf, doesRun, endTurn, findOpenTurn, isSuspended, suspendedTurn, turnHolder } from "./turn-rows.ts";
import type { TurnEnd, TurnRow } from "./turn-rows.ts";

/**
 * Answers the session, which must run the turn that a write joins. Ask after the token: to a late holder a turn that
 * is gone is a race, not a bug.
 */
export function sessionRunning(
  tx: Transaction,
  session: SessionRow | undefined,
  { sessionId }: Grant,
  turnId: string,
): SessionRow {
  const runs = session && doesRun(tx, session, turnId);
  if (session && runs) return session;
  const what = runs === undefined ? "was never begun" : "has ended";
  throw storeError("STORE_CONTRACT", `Turn ${turnId} of session ${sessionId} ${what}: nothing can join it.`, {
    turnId,
  });
}

/** Gives a pending input to a turn; its text joins the transcript in the same step, so a taken message is never lost. */
export function takeInput(tx: Transaction, session: SessionRow, input: PendingInput, turnId: string): TakenInput {
  const { runner: _runner, ...facts } = input;
  markTaken(tx, session, input.inputId, turnId);
  addEntries(tx, session, turnId, [ownDraft(tx, session, takenEntry(input))]);
  return { ...facts, state: "taken", turnId };
}

/** The result of a child's call says what its notice would: a turn settles it without taking it in. */
export function settleNotice(
  tx: Transaction,
  session: SessionRow,
  inputId: string,
  turnId: string,
  end: InputEnd,
): void {
  markTaken(tx, session, inputId, turnId);
  settleInput(tx, session, inputId, end);
}

/** Ends an input, unless it has ended. */
export function settleInput(tx: Transaction, session: SessionRow, inputId: string, end: InputEnd): void {
  if (markSettled(tx, session, inputId, end)) touchSession(tx, session);
}

/** Closes whatever the turn left open, in the one order that keeps PAIR-1 and INBOX-1: results, inputs, turn. */
export function closeTurn(tx: Transaction, session: SessionRow, row: TurnRow, end: TurnEnd): SettledTurn {
  const turnId = row.turn_id;
  const open = openCalls(tx, session, turnId);
  const hasWaited = isSuspended(row);
  const approvals = approvalsOf(row) ?? [];
  const left = { approvals, state: hasWaited ? ("suspended" as const) : ("running" as const) };
  const results = open.map((call) =>
    ownDraft(tx, session, {
      key: `${turnId}/${call.callId}/${hasWaited ? "not-run" : "unknown"}`,
      body: resultOfOpenCall(call, left),
    }),
  );
  addEntries(tx, session, turnId, results);
  forgetCalls(tx, session, turnId);
  const inputs = takenBy(tx, session, turnId);
  for (const { inputId } of inputs) settleInput(tx, session, inputId, end.outcome);
  endUnbegunChildren(tx, session, turnId);
  const turn = endTurn(tx, session, row, end);
  tellParent(tx, session, turn);
  return {
    turn,
    inputIds: inputs.map(({ inputId }) => inputId),
    openCallIds: open.map(({ callId }) => callId),
  };
}

/** The turn has ended itself, and its predecessors' processes before it; with `areLeft` some of them still run. */
export function noteProcesses(
  tx: Transaction,
  { session_id }: SessionRow,
  row: TurnRow,
  areLeft: boolean | undefined,
): void {
  if (areLeft) rememberPredecessor(tx, session_id, { turnId: row.turn_id, holder: turnHolder(row) });
  else forgetPredecessors(tx, session_id);
}

/** Ends the turn that its holder did not: its inputs are interrupted, never silently run again; later grants are told. */
export function settleCrashed(tx: Transaction, session: SessionRow): SettledTurn | undefined {
  const row = findOpenTurn(tx, session);
  if (!row || isSuspended(row)) return undefined;
  tx.requireFull();
  const holder = turnHolder(row);
  rememberPredecessor(tx, session.session_id, { turnId: row.turn_id, holder });
  return closeTurn(tx, session, row, {
    outcome: "interrupted",
    reason: "crashed",
    detail: `The process that ran this turn (pid ${holder.pid}) did not finish it: it ended, or stood still for longer than its lease.`,
  });
}

/** A stop ends a suspended turn at once: nobody holds it who could. */
export function stopSuspended(
  tx: Transaction,
  session: SessionRow,
  row: TurnRow & { readonly suspended_at_ms: number },
  stop: StopRequest,
): SettledTurn {
  return closeTurn(tx, session, row, endByStop(suspendedTurn(session.session_id, row), stop));
}

/** What a session that was just freed leaves to do; the first live waiter is woken. */
export function handOver(tx: Transaction, session: SessionRow | undefined): HandOver {
  const queue = session ? queueOf(tx, session) : [];
  const head = queue.length > 0 ? firstWaiter(queue, tx.now) : undefined;
  const waitingCount = queue.filter(({ input }) => wantsTurn(input)).length;
  if (!session || !head) return { pendingCount: waitingCount };
  wakeInput(tx, session, head);
  return { pendingCount: waitingCount, head: head.input };
}
