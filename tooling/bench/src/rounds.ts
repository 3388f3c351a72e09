/** Every case once in each round, each round begun one case later (ABC, BCA, …): none is always first, or last. */
export function interleavedOrder<Case>(cases: readonly Case[], roundCount: number): readonly (readonly Case[])[] {
  return Array.from({ length: roundCount }, (_, round) => {
    const first = cases.length === 0 ? 0 : round % cases.length;
    return [...cases.slice(first), ...cases.slice(0, first)];
  });
}
