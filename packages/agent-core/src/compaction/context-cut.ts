import type { Entry } from "@turnkeeper/state-store";
import { entryTokens } from "./token-estimate.ts";

/** A context in two: what a summary is made from, and what stays word for word. */
export interface ContextCut {
  readonly basis: readonly Entry[];
  readonly tail: readonly Entry[];
}

/**
 * Cuts a context so that its tail has at most `tailTokens`, and no call is parted from its result (PAIR-1): between the
 * two there is no cut. `entries` is a context in its order.
 */
export function cutContext(entries: readonly Entry[], tailTokens: number): ContextCut {
  const mayCutBefore = cutPlaces(entries);
  let cut = entries.length;
  let tokens = 0;
  for (let index = entries.length - 1; index >= 0; index--) {
    const entry = entries[index];
    if (entry === undefined) break;
    tokens += entryTokens(entry.body);
    if (tokens > tailTokens) break;
    if (mayCutBefore[index]) cut = index;
  }
  return { basis: entries.slice(0, cut), tail: entries.slice(cut) };
}

/** Whether a context may be cut before each of its entries: no call before it has its result behind it. */
function cutPlaces(entries: readonly Entry[]): readonly boolean[] {
  const resultAt = new Map<string, number>();
  for (const [index, { turnId, body }] of entries.entries())
    if (body.role === "tool") resultAt.set(`${turnId}/${body.callId}`, index);
  let lastResultAt = -1;
  return entries.map(({ turnId, body }, index) => {
    const mayCut = lastResultAt < index;
    for (const part of body.role === "assistant" ? body.parts : []) {
      if (part.type === "tool-call")
        lastResultAt = Math.max(lastResultAt, resultAt.get(`${turnId}/${part.callId}`) ?? -1);
    }
    return mayCut;
  });
}
