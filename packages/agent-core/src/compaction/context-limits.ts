/** How a conversation's length is bounded: when it is summarised, and how much of its end stays as it is. */

export interface ContextLimits {
  /** What one request and its answer may have together; absent where nobody said. */
  readonly windowTokens?: number;
  /** From this length on a conversation is summarised. */
  readonly thresholdTokens: number;
  /** So much of its end stays word for word. */
  readonly tailTokens: number;
}

/** A window of this size or more has room to spare at half; a smaller one would be summarised too often. */
const largeWindowTokens = 512_000;
const largeWindowShare = 0.5;
const smallWindowShare = 0.75;
/** Models lose the thread of longer contexts, whatever their windows hold; an unknown window counts as this. */
const thresholdTokensMax = 256_000;

const tailShare = 0.025;
const tailTokensMin = 10_000;
const tailTokensMax = 25_000;
/** In a small window the least tail would leave nothing to summarise. */
const tailShareOfThreshold = 0.25;

/** The limits of a window; `threshold` is the share of it that somebody chose. */
export function contextLimits(windowTokens: number | undefined, threshold: number | undefined): ContextLimits {
  if (windowTokens === undefined) return limitsOf(thresholdTokensMax, tailTokensMin);
  const share = threshold ?? (windowTokens < largeWindowTokens ? smallWindowShare : largeWindowShare);
  const thresholdTokens = Math.max(1, Math.min(thresholdTokensMax, Math.floor(windowTokens * share)));
  const tailTokens = Math.min(tailTokensMax, Math.max(tailTokensMin, Math.floor(windowTokens * tailShare)));
  return { windowTokens, ...limitsOf(thresholdTokens, tailTokens) };
}

function limitsOf(thresholdTokens: number, tailTokens: number): ContextLimits {
  return { thresholdTokens, tailTokens: Math.min(tailTokens, Math.floor(thresholdTokens * tailShareOfThreshold)) };
}
