import type { Folder } from "./folder.ts";
import type { Goal } from "./goal.ts";

/** `limit`: what the machine allows, the least that does the same. `ours`; `peer`: what others use for it. */
export type Role = "ours" | "limit" | "peer";

/** What one round of one case measured: values by metric. */
export type Samples = Readonly<Record<string, readonly number[]>>;

/** One way to do what a benchmark measures, ready to be measured. */
export interface Case {
  readonly name: string;
  readonly role: Role;
  measure(): Promise<Samples>;
  close(): Promise<void>;
}

/** A case that cannot be measured here. */
export interface Skipped {
  readonly name: string;
  readonly skipped: string;
}

export interface Metric {
  readonly name: string;
  readonly unit: string;
  /** The case that the others are divided by. */
  readonly limit: string;
}

export interface Effort {
  readonly isQuick: boolean;
}

/** What is measured side by side, and what is wanted of it. */
export interface Benchmark {
  readonly name: string;
  /** One line for whoever reads the table. */
  readonly title: string;
  readonly metrics: readonly Metric[];
  readonly goals: readonly Goal[];
  roundCount(effort: Effort): number;
  /** Makes the cases; each is closed by whoever runs the benchmark. */
  open(folder: Folder, effort: Effort): Promise<readonly (Case | Skipped)[]>;
}
