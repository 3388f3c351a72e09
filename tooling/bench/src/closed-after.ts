import type { Case, Skipped } from "./benchmark.ts";

/** The same cases; with the last of them that is closed, what they all needed is. */
export function closedAfter(
  cases: readonly (Case | Skipped)[],
  closeNeeded: () => Promise<void>,
): readonly (Case | Skipped)[] {
  let openCount = cases.filter((one) => "measure" in one).length;
  const close = async (one: Case): Promise<void> => {
    await one.close();
    if (--openCount === 0) await closeNeeded();
  };
  return cases.map((one) => ("measure" in one ? { ...one, close: () => close(one) } : one));
}
