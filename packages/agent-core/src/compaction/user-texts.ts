import type { Entry } from "@turnkeeper/state-store";
import { cutText } from "./cut-text.ts";
import { estimateTokens } from "./token-estimate.ts";

/** The least that is kept of a message: enough to see what was asked. */
const shortestTokens = 100;

/** What users said in a basis, an earlier summary's share first. */
function saidIn(basis: readonly Entry[]): readonly string[] {
  return basis.flatMap(({ body }) => {
    if (body.role === "summary") return body.userTexts ?? [];
    return body.role === "user" && body.child === undefined ? [body.text] : [];
  });
}

/** How many tokens each may have so that all have room: short ones are whole, the long ones share what is left. */
function fairShare(lengths: readonly number[], tokensMax: number): number {
  let restTokens = tokensMax;
  let restCount = lengths.length;
  for (const tokens of lengths.toSorted((left, right) => left - right)) {
    if (tokens > restTokens / restCount) return Math.max(shortestTokens, restTokens / restCount);
    restTokens -= tokens;
    restCount--;
  }
  return Number.POSITIVE_INFINITY;
}

/**
 * The users' own words of a basis that go beside its summary, oldest first, in at most about `tokensMax`. Long ones are
 * cut in their middle before any is left out; the newest is there in any case. What has no room is in the summary, and
 * word for word in the transcript.
 */
export function userTextsOf(basis: readonly Entry[], tokensMax: number): readonly string[] {
  const texts = saidIn(basis).slice(-Math.max(1, Math.floor(tokensMax / shortestTokens)));
  const lengths = texts.map(estimateTokens);
  const share = fairShare(lengths, tokensMax);
  return texts.map((text, index) => {
    const tokens = lengths[index] ?? 0;
    return tokens <= share ? text : cutText(text, Math.floor((text.length * share) / tokens));
  });
}
