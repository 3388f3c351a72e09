/** What a child's end, or its parent's, writes beside itself; the rules stand in the state-store's child.ts. */
import { childNotice, digestOf, numberedNoticeId, withChildEnd } from "@turnkeeper/state-store";
import type { InputEnd, ParentCall } from "@turnkeeper/state-store";
import { pendingCount, queueOf, settleInput } from "./input-rows.ts";
import type { SessionImage } from "./session-image.ts";
import { parentOf } from "./session-rows.ts";
import { storeError } from "./store-failure.ts";
import { approvalsOf, isSuspended } from "./turn-rows.ts";

/** A session is one call's child from its first moment on, or never. */
export function checkParent(image: SessionImage, parent: ParentCall | undefined): void {
  if (!image.session || !parent) return;
  const own = parentOf(image.session);
  const { sessionId, turnId, callId } = parent;
  if (own?.sessionId === sessionId && own.turnId === turnId && own.callId === callId) return;
  throw storeError("STORE_CONTRACT", `Session ${image.sessionId} is there already, and is no child of call ${callId}.`);
}

/** Nothing of the child has run, and nothing waits to. */
export function isUnbegun(child: SessionImage): boolean {
  return child.session?.turn_count === 0 && pendingCount(child) === 0;
}

interface ChildsEnd {
  readonly turnId?: string;
  readonly outcome: InputEnd;
  readonly reason?: string;
  readonly detail?: string;
}

/** Tells the parent of the child's end, once; no further end of it is told. `parent` is asked for only where it counts. */
export function tellParent(child: SessionImage, end: ChildsEnd, askParent: (id: string) => SessionImage): void {
  const row = child.session;
  const parent = row && parentOf(row);
  if (!row || !parent || row.has_told_parent) return;
  child.putSession({ ...row, has_told_parent: true });
  const target = askParent(parent.sessionId);
  if (!target.session || !target.turn(parent.turnId)) return;
  const bodies = end.turnId === undefined ? [] : child.lastBodies(end.turnId);
  const notice = childNotice({ sessionId: child.sessionId, parent }, end, bodies);
  target.offer({
    input_id: numberedNoticeId(notice.inputId, (inputId) => target.hasInput(inputId)),
    seq: null,
    text: JSON.stringify(notice.text),
    digest: digestOf(notice.text),
    delivery: "steer",
    offered_at_ms: target.atMs,
    runner: null,
    runner_until_clock_ms: null,
    woken_clock_ms: null,
    turn_id: null,
    ended_as: null,
    ended_at_ms: null,
    child: JSON.stringify(notice.child),
    settings: null,
  });
  const turn = target.openTurn;
  const isAwaited = turn?.turn_id === parent.turnId && isSuspended(turn);
  const approvals = isAwaited ? withChildEnd(approvalsOf(turn) ?? [], child.sessionId, target.atMs) : undefined;
  if (turn && approvals) {
    target.putTurn({ ...turn, approvals: JSON.stringify(approvals) });
    target.ring();
  }
  target.touch();
}

/** A child that has no turn when its parent's turn ends never gets one: nobody waits for it any more. */
export function endUnbegunChildren(parent: SessionImage): void {
  for (const sessionId of parent.unbegunChildren) {
    const child = parent.other(sessionId);
    if (!child.session || child.session.turn_count > 0) continue;
    for (const { input } of queueOf(child)) settleInput(child, input.inputId, "cancelled");
    child.touch();
    tellParent(child, { outcome: "cancelled" }, () => parent);
  }
}
