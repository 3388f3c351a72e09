import { passOverTheDead } from "./offer-input.ts";
import type { OfferDeps } from "./offer-input.ts";
import { deadGrantOf } from "./reaper.ts";

/**
 * Whether an input of the session waits for nobody: no process that may live holds the session or is first in its queue.
 * Makes orphans of what dead processes were to run.
 */
async function isLeft(deps: OfferDeps, sessionId: string): Promise<boolean> {
  const { store } = deps;
  const lease = await store.leases.read(sessionId);
  if (lease && !(await deadGrantOf(deps, lease))) return false;
  await passOverTheDead(deps, sessionId);
  // What tells of a child's end wants no turn of its own.
  const head = (await store.inbox.pending(sessionId)).find(({ child }) => child === undefined);
  return head !== undefined && head.runner === undefined;
}

/** Sessions, at most so many, whose inputs wait for whoever comes: those that have waited longest. */
export async function sessionsLeft(deps: OfferDeps, sessionCount: number): Promise<readonly string[]> {
  const left: string[] = [];
  // Most of what waits is waited for: more are looked at than are wanted.
  for (const sessionId of await deps.store.inbox.waitingSessions(sessionCount * 10)) {
    if (left.length === sessionCount || deps.closing.aborted) break;
    if (await isLeft(deps, sessionId)) left.push(sessionId);
  }
  return left;
}
