import type { ParentCall, StateStore } from "@turnkeeper/state-store";

type Stores = Pick<StateStore, "sessions" | "turns" | "transcript">;

/** More than any delegation nests. */
const depthMax = 16;

/** Whether the parent's call waits for the child: its turn is suspended over it, or runs and has no result of the call. */
async function isWaitedFor(
  { turns, transcript }: Stores,
  childId: string,
  { sessionId, turnId, callId }: ParentCall,
): Promise<boolean> {
  const turn = await turns.read(sessionId, turnId);
  if (!turn || turn.state === "ended") return false;
  if (turn.state === "suspended")
    return turn.approvals.some(({ child }) => child?.sessionId === childId && child.endedAtMs === undefined);
  const { entries } = await transcript.load(sessionId, { turnId, all: true });
  return !entries.some(({ body, late }) => body.role === "tool" && body.callId === callId && !late);
}

/**
 * The sessions whose turns wait, over however many children between, for the task that `sessionId` runs: the nearest
 * first. The store knows of them, whichever processes they and the children run in.
 */
export async function parentsOf(stores: Stores, sessionId: string): Promise<readonly string[]> {
  const found: string[] = [];
  let childId = sessionId;
  while (found.length < depthMax) {
    const child = await stores.sessions.read(childId);
    // A later turn of a child's session is not its task, and nobody waits for it.
    if (!child?.parent || child.totals.turnCount !== 1) break;
    if (!(await isWaitedFor(stores, childId, child.parent))) break;
    childId = child.parent.sessionId;
    found.push(childId);
  }
  return found;
}
