/** Answers of two stores side by side: numbers that a store may choose freely are replaced by names for them. */

/** Positions and counters need only to grow; where they begin and how far they step is the store's own affair. */
const freeNumbers: ReadonlySet<string> = new Set(["seq", "revision", "fencingToken"]);

/**
 * Makes what one store answers comparable with what another does: each free number becomes the how-manieth of its kind
 * it was to appear, absent and undefined are the same. One for each session and run.
 */
export function createComparable(): (answer: unknown) => unknown {
  const seen = new Map<string, Map<unknown, number>>();
  const nameOf = (kind: string, value: unknown): string => {
    const names = seen.get(kind) ?? new Map<unknown, number>();
    seen.set(kind, names);
    const known = names.get(value) ?? names.size;
    names.set(value, known);
    return `${kind} ${known}`;
  };
  const comparable = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(comparable);
    if (typeof value !== "object" || value === null) return value;
    // In the order of the keys, not as the store happened to set them: names are given as numbers appear.
    const fields = Object.entries(value)
      .filter(([, one]) => one !== undefined)
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, one]) => [key, freeNumbers.has(key) ? nameOf(key, one) : comparable(one)] as const);
    return Object.fromEntries(fields);
  };
  return comparable;
}
