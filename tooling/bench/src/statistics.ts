/** The value below which the share `share` (0 to 1) of the values lies: nearest rank, so it is one of them. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new Error("There is no percentile of no values.");
  if (!(share >= 0 && share <= 1)) throw new Error(`A share must be from 0 to 1, got ${share}.`);
  const sorted = Float64Array.from(values).toSorted();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** The middle one, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error("There is no median of no values.");
  const sorted = Float64Array.from(values).toSorted();
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * How many times `base` the values are: the median of the rounds' own ratios. Two cases of one round saw the same
 * machine, two rounds may not have: what slows a whole round down falls out.
 */
export function ratioOfRounds(values: readonly number[], base: readonly number[]): number {
  if (values.length !== base.length)
    throw new Error(`Rounds must be paired, got ${values.length} against ${base.length}.`);
  return median(values.map((value, round) => value / (base[round] ?? Number.NaN)));
}
