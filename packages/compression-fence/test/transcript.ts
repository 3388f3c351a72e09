/** A transcript as the store keeps it, reduced to what a compaction touches. */
export interface Basis {
  readonly throughSeq: number;
  readonly compactionCount: number;
}

export interface Line {
  readonly seq: number;
  readonly text: string;
}

export interface Transcript {
  append(text: string): void;
  basis(): Basis;
  /** The entries the model sees, summary first. */
  active(): readonly string[];
  /** What a summary of `basis` must hold: every active entry up to its last one. */
  textOf(basis: Basis): string;
  apply(basis: Basis, summary: string): Promise<{ kind: "applied" } | { kind: "stale-basis" }>;
}

export function createTranscript(): Transcript {
  let lastSeq = 0;
  let compactionCount = 0;
  let lines: Line[] = [];
  const through = (basis: Basis): Line[] => lines.filter((line) => line.seq <= basis.throughSeq);
  return {
    append: (text) => void lines.push({ seq: ++lastSeq, text }),
    basis: () => ({ throughSeq: lastSeq, compactionCount }),
    active: () => lines.map((line) => line.text),
    textOf: (basis) =>
      through(basis)
        .map((line) => line.text)
        .join("+"),
    apply: async (basis, summary) => {
      if (basis.compactionCount !== compactionCount) return { kind: "stale-basis" };
      compactionCount++;
      const later = lines.filter((line) => line.seq > basis.throughSeq);
      lines = [{ seq: basis.throughSeq, text: `(${summary})` }, ...later];
      return { kind: "applied" };
    },
  };
}

export function deferred<T = void>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let settle: ((value: T) => void) | undefined;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle?.(value) };
}
