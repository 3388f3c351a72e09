/** How `of` is to stand to `against`, or to a number of its own. Met when the value is at most `atMost`. */
export interface Goal {
  /** The case of which something is wanted. */
  readonly of: string;
  readonly metric: string;
  /** What it is divided by: another case, another metric, or both. Absent: the goal is a plain number. */
  readonly against?: { readonly name?: string; readonly metric?: string };
  /** `p50` when absent. `p99` is taken over all rounds together. */
  readonly statistic?: "p50" | "p99" | "max";
  readonly atMost: number;
  /** The same in the words of the target, where a plain `at most` would not be recognised. */
  readonly meaning?: string;
  /** Processor time and counts decide it, not disk, scheduler or other work: tests hold it, with slack. */
  readonly isCpuBound?: boolean;
}
