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
import { endUnbegunChildren, tellParent } from "./child-sessions.ts";
import { addEntries, openCalls, ownDraft } from "./entry-rows.ts";
import { markTaken, queueOf, settleInput, takenBy, wakeInput } from "./input-rows.ts";
import { forgetPredecessors, rememberPredecessor } from "./lease-rows.ts";
import type { SessionImage } from "./session-image.ts";
import { storeError } from "./store-failure.ts";
import { approvalsOf, endTurn, isSuspended, suspendedTurn, turnHolder } from "./turn-rows.ts";
import type { TurnEnd, TurnRow } from "./turn-rows.ts";

/** Refuses a write whose turn does not run. Ask after the token: to a late holder a turn that is gone is a race, not a bug. */
export function mustRun(image: SessionImage, { sessionId }: Grant, turnId: string): void {
  const turn = image.session ? image.turn(turnId) : undefined;
  if (turn?.outcome === null && !isSuspended(turn)) return;
  const what = turn ? "has ended" : "was never begun";
  throw storeError("STORE_CONTRACT", `Turn ${turnId} of session ${sessionId} ${what}: nothing can join it.`, {
    turnId,
  });
}

/** Gives a pending input to a turn; its text joins the transcript in the same step, so a taken message is never lost. */
export function takeInput(image: SessionImage, input: PendingInput, turnId: string): TakenInput {
  const { runner: _runner, ...facts } = input;
  markTaken(image, input.inputId, turnId);
  addEntries(image, turnId, [ownDraft(image, takenEntry(input))]);
  return { ...facts, state: "taken", turnId };
}

/** The result of a child's call says what its notice would: a turn settles it without taking it in. */
export function settleNotice(image: SessionImage, inputId: string, turnId: string, end: InputEnd): void {
  markTaken(image, inputId, turnId);
  settleInput(image, inputId, end);
}

/** Closes whatever the turn left open, in the one order that keeps PAIR-1 and INBOX-1: results, inputs, turn. */
export function closeTurn(image: SessionImage, row: TurnRow, end: TurnEnd): SettledTurn {
  const turnId = row.turn_id;
  const open = openCalls(image, turnId);
  const hasWaited = isSuspended(row);
  const approvals = approvalsOf(row) ?? [];
  const left = { approvals, state: hasWaited ? ("suspended" as const) : ("running" as const) };
  addEntries(
    image,
    turnId,
    open.map((call) =>
      ownDraft(image, {
        key: `${turnId}/${call.callId}/${hasWaited ? "not-run" : "unknown"}`,
        body: resultOfOpenCall(call, left),
      }),
    ),
  );
  image.forgetCalls(turnId);
  const inputs = takenBy(image, turnId);
  for (const { inputId } of inputs) settleInput(image, inputId, end.outcome);
  endUnbegunChildren(image);
  const turn = endTurn(image, row, end);
  tellParent(image, turn, (parentId) => image.other(parentId));
  return {
    turn,
    inputIds: inputs.map(({ inputId }) => inputId),
    openCallIds: open.map(({ callId }) => callId),
  };
}

/** The turn has ended itself, and its predecessors' processes before it; with `areLeft` some of them still run. */
export function noteProcesses(image: SessionImage, row: TurnRow, areLeft: boolean | undefined): void {
  if (areLeft) rememberPredecessor(image, { turnId: row.turn_id, holder: turnHolder(row) });
  else forgetPredecessors(image);
}

/** Ends the turn that its holder did not: its inputs are interrupted, never silently run again; later grants are told. */
export function settleCrashed(image: SessionImage): SettledTurn | undefined {
  const row = image.openTurn;
  if (!row || isSuspended(row)) return undefined;
  const holder = turnHolder(row);
  rememberPredecessor(image, { turnId: row.turn_id, holder });
  return closeTurn(image, row, {
    outcome: "interrupted",
    reason: "crashed",
    detail: `The process that ran this turn (pid ${holder.pid}) did not finish it: it ended, or stood still for longer than its lease.`,
  });
}

/** A stop ends a suspended turn at once: nobody holds it who could. */
export function stopSuspended(
  image: SessionImage,
  row: TurnRow & { readonly suspended_at_ms: number },
  stop: StopRequest,
): SettledTurn {
  return closeTurn(image, row, endByStop(suspendedTurn(image.sessionId, row), stop));
}

/** What a session that was just freed leaves to do; the first live waiter is woken. */
export function handOver(image: SessionImage): HandOver {
  const queue = queueOf(image);
  const head = queue.length > 0 ? firstWaiter(queue, image.now) : undefined;
  const waitingCount = queue.filter(({ input }) => wantsTurn(input)).length;
  if (!head) return { pendingCount: waitingCount };
  wakeInput(image, head);
  return { pendingCount: waitingCount, head: head.input };
}
