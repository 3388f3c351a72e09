import type { CompactionBasis, Entry, SummaryBody, Transcript } from "@turnkeeper/state-store";
import { cutContext } from "./context-cut.ts";
import type { ContextLimits } from "./context-limits.ts";
import { entryTokens } from "./token-estimate.ts";
import { userTextsOf } from "./user-texts.ts";

/** What one compaction would do: what is summarised, what stays, and how long all of it is. */
export interface CompactionPlan {
  readonly basis: CompactionBasis;
  readonly replaced: readonly Entry[];
  /** By estimate, as `tokensAfter` is: the two compare. */
  readonly tokensBefore: number;
  /** By what share the context gets shorter, not counting the summary itself: 0 to 1. */
  readonly gain: number;
  /** The entry that takes the place of the basis. */
  summaryBody(text: string): SummaryBody;
  tokensAfter(summary: SummaryBody): number;
}

/** How much less is kept word for word when what was kept before was still too long. */
const squeezes = [1, 0.25, 0] as const;
export const squeezeMax: number = squeezes.length - 1;

/** However large the tail might be, most of a context that is too long must go. */
const tailShareMax = 0.25;
/** A message that nobody has answered yet stays whole, unless it is what makes the context too long. */
const unansweredShareMax = 0.5;
const userTextsShare = 0.2;
const userTextsTokensMax = 20_000;

/** Plans a compaction of a context; absent where there is nothing but a summary, or nothing at all, to replace. */
export function planCompaction(
  { entries, compactionCount }: Pick<Transcript, "entries" | "compactionCount">,
  { tailTokens, thresholdTokens }: ContextLimits,
  squeeze: number,
): CompactionPlan | undefined {
  const factor = squeezes[squeeze] ?? 0;
  const sum = (some: readonly Entry[]): number => some.reduce((tokens, { body }) => tokens + entryTokens(body), 0);
  const tokensBefore = sum(entries);
  const unanswered = sum(entries.slice(entries.findLastIndex(({ body }) => body.role !== "user") + 1));
  const mustStay = unanswered <= thresholdTokens * unansweredShareMax ? unanswered : 0;
  const tailMax = Math.max(mustStay, Math.min(tailTokens, tokensBefore * tailShareMax)) * factor;
  const { basis, tail } = cutContext(entries, tailMax);
  const last = basis.at(-1);
  if (last === undefined || basis.every(({ body }) => body.role === "summary" || body.role === "notice"))
    return undefined;
  const tailLength = sum(tail);
  const userTextsTokens = Math.min(userTextsTokensMax, thresholdTokens * userTextsShare) * Math.max(factor, 0.1);
  const userTexts = userTextsOf(basis, userTextsTokens);
  const bodyOf = (text: string): SummaryBody => ({
    role: "summary",
    text,
    ...(userTexts.length > 0 ? { userTexts } : {}),
  });
  return {
    // The last entry of a basis is no summary: one stands first in a context, and is not alone in the basis.
    basis: { throughSeq: last.seq, compactionCount },
    replaced: basis,
    tokensBefore,
    gain: tokensBefore === 0 ? 0 : 1 - (entryTokens(bodyOf("")) + tailLength) / tokensBefore,
    summaryBody: bodyOf,
    tokensAfter: (summary) => entryTokens(summary) + tailLength,
  };
}
