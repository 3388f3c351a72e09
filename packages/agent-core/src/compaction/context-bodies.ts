import type { Entry, EntryBody } from "@turnkeeper/state-store";

/**
 * A context as the loop keeps it. What a provider counted before the newest summary was the length of a longer context
 * and says nothing of this one: it is left out.
 */
export function contextBodies(entries: readonly Entry[]): EntryBody[] {
  const summarySeq = entries.reduce(
    (seq, { body, seq: own }) => (body.role === "summary" ? Math.max(seq, own) : seq),
    0,
  );
  return entries.map(({ body, seq }) => {
    if (body.role !== "assistant" || body.usage === undefined || seq > summarySeq) return body;
    const { usage: _stale, ...rest } = body;
    return rest;
  });
}
