/** What a child's end, or its parent's, writes beside itself; the rules stand in the state-store's child.ts. */
import { childNotice, digestOf, numberedNoticeId, withChildEnd } from "@turnkeeper/state-store";
import type { EntryBody, InputEnd, ParentCall } from "@turnkeeper/state-store";
import { findInput, markSettled, offerInput, pendingCount, queueOf } from "./input-rows.ts";
import { findSession, parentOf, touchSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { storeError } from "./store-failure.ts";
import type { Transaction } from "./transaction.ts";
import { approvalsOf, findTurn, isSuspended, storeAnswers } from "./turn-rows.ts";

/** How many of a turn's last entries are looked at for its answer: it may stand in pieces. */
const answerEntriesMax = 16;

/** A session is one call's child from its first moment on, or never. */
export function checkParent(session: SessionRow, parent: ParentCall): void {
  const own = parentOf(session);
  const { sessionId, turnId, callId } = parent;
  if (own?.sessionId === sessionId && own.turnId === turnId && own.callId === callId) return;
  throw storeError(
    "STORE_CONTRACT",
    `Session ${session.session_id} is there already, and is no child of call ${callId}.`,
  );
}

function hasTurns(tx: Transaction, session: SessionRow): boolean {
  return tx.rows.get("SELECT 1 FROM turn WHERE session_no = ? LIMIT 1", session.session_no) !== undefined;
}

/** Nothing of the child has run, and nothing waits to. */
export function isUnbegun(tx: Transaction, child: SessionRow): boolean {
  return !hasTurns(tx, child) && pendingCount(tx, child) === 0;
}

/** The turn's last entries, oldest first. A body that rotted must not keep its turn from ending. */
function lastBodies(tx: Transaction, { session_no }: SessionRow, turnId: string): readonly EntryBody[] {
  const rows = tx.rows.all<{ body: string }>(
    `SELECT body FROM entry JOIN turn USING (session_no, turn_id)
     WHERE session_no = ? AND turn_id = ? AND seq >= from_seq AND late = 0 AND json_valid(body) ORDER BY seq DESC LIMIT ?`,
    session_no,
    turnId,
    answerEntriesMax,
  );
  return rows.map(({ body }) => JSON.parse(body) as EntryBody).toReversed();
}

/** Tells the parent of the child's end, once; no further end of it is told. */
export function tellParent(
  tx: Transaction,
  child: SessionRow,
  end: {
    readonly turnId?: string;
    readonly outcome: InputEnd;
    readonly reason?: string;
    readonly detail?: string;
  },
): void {
  const parent = parentOf(child);
  if (!parent || child.has_told_parent === 1) return;
  tx.requireFull();
  child.has_told_parent = 1;
  tx.rows.run("UPDATE session SET has_told_parent = 1 WHERE session_no = ?", child.session_no);
  const target = findSession(tx, parent.sessionId);
  const turn = target && findTurn(tx, target, parent.turnId);
  if (!target || !turn) return;
  const bodies = end.turnId === undefined ? [] : lastBodies(tx, child, end.turnId);
  const notice = childNotice({ sessionId: child.session_id, parent }, end, bodies);
  offerInput(tx, target, {
    ...notice,
    inputId: numberedNoticeId(notice.inputId, (inputId) => findInput(tx, target, inputId) !== undefined),
    digest: digestOf(notice.text),
    delivery: "steer",
  });
  const approvals = isSuspended(turn) ? withChildEnd(approvalsOf(turn) ?? [], child.session_id, tx.atMs) : undefined;
  if (approvals) storeAnswers(tx, target, turn.turn_id, approvals);
  touchSession(tx, target);
}

/** A child that has no turn when its parent's turn ends never gets one: nobody waits for it any more. */
export function endUnbegunChildren(tx: Transaction, parent: SessionRow, turnId: string): void {
  const sessionIds = tx.rows.all<{ session_id: string }>(
    `SELECT session_id FROM session WHERE parent_session_id = ? AND parent_turn_id = ? AND has_told_parent = 0
       AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.session_no = session.session_no) ORDER BY session_no`,
    parent.session_id,
    turnId,
  );
  for (const { session_id } of sessionIds) {
    const child = findSession(tx, session_id);
    if (!child) continue;
    for (const { input } of queueOf(tx, child)) markSettled(tx, child, input.inputId, "cancelled");
    touchSession(tx, child);
    tellParent(tx, child, { outcome: "cancelled" });
  }
}
