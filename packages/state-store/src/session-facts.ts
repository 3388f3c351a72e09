import { callsOf } from "./entry.ts";
import type { Entry } from "./entry.ts";
import type { LastEntry, SessionTotals } from "./session.ts";
import { titleSourceOf } from "./title.ts";

/** What a list of sessions tells of each, as its entries say it. */
export interface SessionFacts extends Omit<SessionTotals, "turnCount"> {
  /** As much of the first user entry as its title may be made from. */
  readonly firstText?: string;
  readonly lastEntry?: LastEntry;
}

/** Providers are not all to be believed: a count that is none adds nothing, and stops no append. */
function countOf(tokens: number | undefined): number {
  return Number.isSafeInteger(tokens) ? Math.max(0, tokens ?? 0) : 0;
}

function lastEntryOf({ body, atMs }: Pick<Entry, "body" | "atMs">): LastEntry {
  const toolName = body.role === "tool" ? body.name : callsOf(body).at(-1)?.name;
  return { atMs, role: body.role, ...(toolName === undefined ? {} : { toolName }) };
}

/** Derives them from entries in order of appending: from all of a session, or from those a step adds to it. */
export function sessionFactsOf(entries: readonly Pick<Entry, "body" | "atMs">[]): SessionFacts {
  let toolCallCount = 0;
  let inputTokens = 0;
  let outputTokens = 0;
  let firstText: string | undefined;
  for (const { body } of entries) {
    if (body.role === "user") firstText ??= titleSourceOf(body.text);
    if (body.role !== "assistant") continue;
    toolCallCount += callsOf(body).length;
    inputTokens += countOf(body.usage?.inputTokens);
    outputTokens += countOf(body.usage?.outputTokens);
  }
  const last = entries.at(-1);
  return {
    toolCallCount,
    inputTokens,
    outputTokens,
    ...(firstText === undefined ? {} : { firstText }),
    ...(last ? { lastEntry: lastEntryOf(last) } : {}),
  };
}
