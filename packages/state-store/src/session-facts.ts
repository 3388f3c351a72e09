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

/** What an entry says of its session. */
function factsOf({ body, atMs }: Pick<Entry, "body" | "atMs">): SessionFacts {
  const usage = body.role === "assistant" ? body.usage : undefined;
  return {
    toolCallCount: callsOf(body).length,
    inputTokens: countOf(usage?.inputTokens),
    outputTokens: countOf(usage?.outputTokens),
    ...(body.role === "user" ? { firstText: titleSourceOf(body.text) } : {}),
    lastEntry: lastEntryOf({ body, atMs }),
  };
}

const noFacts: SessionFacts = { toolCallCount: 0, inputTokens: 0, outputTokens: 0 };

/** The facts of two parts of a session that follow each other. */
export function joinFacts(earlier: SessionFacts, later: SessionFacts): SessionFacts {
  const firstText = earlier.firstText ?? later.firstText;
  const lastEntry = later.lastEntry ?? earlier.lastEntry;
  return {
    toolCallCount: earlier.toolCallCount + later.toolCallCount,
    inputTokens: earlier.inputTokens + later.inputTokens,
    outputTokens: earlier.outputTokens + later.outputTokens,
    ...(firstText === undefined ? {} : { firstText }),
    ...(lastEntry ? { lastEntry } : {}),
  };
}

/** Derives them from entries in order of appending: from all of a session, or from those a step adds to it. */
export function sessionFactsOf(entries: readonly Pick<Entry, "body" | "atMs">[]): SessionFacts {
  return entries.map(factsOf).reduce(joinFacts, noFacts);
}
