/** What a child's end, or its parent's, writes beside itself. */
import { withChildEnd } from "../approval.ts";
import { childNotice, numberedNoticeId } from "../child.ts";
import type { OfferRequest, PendingInput } from "../inbox.ts";
import { canonicalJson, digestOf } from "../json.ts";
import { storeError } from "./memory-rows.ts";
import type { SessionRow } from "./memory-rows.ts";
import type { MemoryState } from "./memory-state.ts";

/** A session is one call's child from its first moment on, or never. */
export function checkParent(session: SessionRow | undefined, { sessionId, parent }: OfferRequest): void {
  if (!session || !parent || canonicalJson({ ...session.parent }) === canonicalJson({ ...parent })) return;
  throw storeError(
    "STORE_CONTRACT",
    `Session ${sessionId} is there already, and is no child of call ${parent.callId}.`,
  );
}

/** Nothing of the child has run, and nothing waits to. */
export function isUnbegun(state: MemoryState, child: SessionRow): boolean {
  return child.turns.size === 0 && state.pendingCount(child) === 0;
}

/** Tells the parent of the child's end, once; no further end of it is told. */
export function tellParent(state: MemoryState, child: SessionRow, end: Parameters<typeof childNotice>[1]): void {
  const { parent, sessionId, hasToldParent } = child;
  if (!parent || hasToldParent) return;
  child.hasToldParent = true;
  const target = state.sessions.get(parent.sessionId);
  const turn = target?.turns.get(parent.turnId);
  if (!target || !turn) return;
  const own = child.entries.filter(({ turnId, late }) => turnId === end.turnId && !late);
  const notice = childNotice(
    { sessionId, parent },
    end,
    own.map(({ body }) => body),
  );
  const inputId = numberedNoticeId(notice.inputId, (id) => target.inputs.has(id));
  const record: PendingInput = {
    ...notice,
    sessionId: target.sessionId,
    inputId,
    seq: ++state.lastInputSeq,
    digest: digestOf(notice.text),
    delivery: "steer",
    offeredAtMs: state.wallMs(),
    state: "pending",
  };
  target.inputs.set(inputId, { record });
  const approvals = turn.state === "suspended" ? withChildEnd(turn.approvals, sessionId, state.wallMs()) : undefined;
  if (turn.state === "suspended" && approvals) target.turns.set(turn.turnId, { ...turn, approvals });
  target.updatedAtMs = state.wallMs();
}

/** A child that has no turn when its parent's turn ends never gets one: nobody waits for it any more. */
export function endUnbegunChildren(state: MemoryState, sessionId: string, turnId: string): void {
  for (const child of state.sessions.values()) {
    const { parent } = child;
    if (parent?.sessionId !== sessionId || parent.turnId !== turnId || child.hasToldParent || child.turns.size > 0)
      continue;
    for (const { input } of state.queueOf(child)) state.settle(child, input.inputId, "cancelled");
    tellParent(state, child, { outcome: "cancelled" });
  }
}
