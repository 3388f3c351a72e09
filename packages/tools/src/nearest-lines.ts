/** Finds the lines that somebody may have meant whose text is not there. Pure, and bounded for any text. */

export interface NearLine {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  /** 1: the same but for white space at its ends. */
  readonly likeness: number;
}

const comparedCharactersMax = 200;
// Comparing costs about 20 microseconds a line; the rest of a longer file is only looked through for the same line.
const comparedLinesMax = 5_000;
const leastLikeness = 0.5;

/** The lines most like the most telling line of `wanted`, in order; none where nothing is like it. */
export function nearestLines(text: string, wanted: string, countMax: number): readonly NearLine[] {
  const telling = wanted
    .split(/\r?\n/)
    .map((line) => line.trim().slice(0, comparedCharactersMax))
    .reduce((longest, line) => (line.length > longest.length ? line : longest), "");
  if (telling === "") return [];
  const pairs = pairsOf(telling);
  const near: NearLine[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const candidate = line.trim().slice(0, comparedCharactersMax);
    const likeness = candidate === telling ? 1 : index < comparedLinesMax ? likenessOf(pairs, candidate) : 0;
    if (likeness >= leastLikeness) near.push({ line: index + 1, text: line.slice(0, comparedCharactersMax), likeness });
  }
  return near
    .toSorted((left, right) => right.likeness - left.likeness || left.line - right.line)
    .slice(0, countMax)
    .toSorted((left, right) => left.line - right.line);
}

/** How many pairs of neighbouring characters two texts share (Dice's coefficient), from 0 to 1. */
function likenessOf(pairs: ReadonlyMap<string, number>, candidate: string): number {
  const wantedCount = [...pairs.values()].reduce((sum, count) => sum + count, 0);
  if (wantedCount + candidate.length - 1 <= 0) return 0;
  const rest = new Map(pairs);
  let sharedCount = 0;
  for (let index = 0; index + 1 < candidate.length; index++) {
    const pair = candidate.slice(index, index + 2);
    const left = rest.get(pair) ?? 0;
    if (left > 0) {
      sharedCount += 1;
      rest.set(pair, left - 1);
    }
  }
  return (2 * sharedCount) / (wantedCount + candidate.length - 1);
}

function pairsOf(text: string): ReadonlyMap<string, number> {
  const pairs = new Map<string, number>();
  for (let index = 0; index + 1 < text.length; index++) {
    const pair = text.slice(index, index + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}
