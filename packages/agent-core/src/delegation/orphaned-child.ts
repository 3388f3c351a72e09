import type { ParentCall, StateStore } from "@turnkeeper/state-store";
import type { StopRequestOptions } from "../stop.ts";

/** What every child's session is called. */
const childIdPattern = /^child-/;

/**
 * The hard stop that a child's parent has ended by, and that the child has not had: whoever stopped the parent may have
 * died between the two. Nothing for a child whose parent goes on or was stopped softly, and for a later turn of its
 * session, which is nobody's task. For whoever finds its turn open: the reaper, and the process that goes on with it.
 */
export async function stopOfParent(
  { sessions, turns }: Pick<StateStore, "sessions" | "turns">,
  child: { readonly sessionId: string; readonly parent?: ParentCall | undefined },
): Promise<StopRequestOptions | undefined> {
  if (!child.parent && !childIdPattern.test(child.sessionId)) return undefined;
  const session = await sessions.read(child.sessionId);
  if (!session?.parent || session.totals.turnCount !== 1) return undefined;
  const { sessionId, turnId } = session.parent;
  const turn = await turns.read(sessionId, turnId);
  if (turn?.state !== "ended" || !turn.stop?.hard) return undefined;
  return { hard: true, reason: "parent", by: `turn ${turnId} of session ${sessionId}` };
}
