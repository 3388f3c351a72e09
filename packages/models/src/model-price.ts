/** What a million tokens cost, in whatever currency: nothing here knows a price by itself. */
export interface ModelPrice {
  readonly inputPerMillion: number;
  /** Of input that was read from a cache. Default: the price of input. */
  readonly cachedInputPerMillion?: number;
  /** Of input that was written to a cache. Default: the price of input. */
  readonly cacheWritePerMillion?: number;
  /** Of output, reasoning included. */
  readonly outputPerMillion: number;
}

/** Counts of tokens: input includes what a cache gave or took, output includes reasoning. */
export interface TokenCounts {
  readonly inputTokens?: number;
  readonly cachedInputTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly outputTokens?: number;
}

/** What so many tokens cost. A count that the provider did not give costs nothing. */
export function costOf(
  { inputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0, outputTokens = 0 }: TokenCounts,
  price: ModelPrice,
): number {
  const { inputPerMillion, outputPerMillion } = price;
  const { cachedInputPerMillion = inputPerMillion, cacheWritePerMillion = inputPerMillion } = price;
  const plainTokens = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens);
  const millionths =
    plainTokens * inputPerMillion +
    cachedInputTokens * cachedInputPerMillion +
    cacheWriteTokens * cacheWritePerMillion +
    outputTokens * outputPerMillion;
  return millionths / 1_000_000;
}
