import type { Benchmark, Case, Effort, Role, Samples, Skipped } from "./benchmark.ts";
import { openFolder } from "./folder.ts";
import { interleavedOrder } from "./rounds.ts";

/** What a case measured, round by round. */
export interface Measured {
  readonly name: string;
  readonly role: Role;
  readonly rounds: readonly Samples[];
}

export interface Measurement {
  readonly benchmark: Benchmark;
  readonly cases: readonly Measured[];
  readonly skipped: readonly Skipped[];
}

/** Runs one benchmark: opens its cases, measures them interleaved, closes them. */
export async function measure(benchmark: Benchmark, effort: Effort): Promise<Measurement> {
  using folder = openFolder();
  const opened = await benchmark.open(folder, effort);
  const skipped = opened.filter((one): one is Skipped => "skipped" in one);
  const cases = opened.filter((one): one is Case => !("skipped" in one));
  const rounds = new Map<Case, Samples[]>(cases.map((one) => [one, []]));
  try {
    for (const order of interleavedOrder(cases, benchmark.roundCount(effort))) {
      for (const one of order) rounds.get(one)?.push(await one.measure());
    }
  } finally {
    for (const one of cases) await one.close();
  }
  return {
    benchmark,
    skipped,
    cases: cases.map((one) => ({ name: one.name, role: one.role, rounds: rounds.get(one) ?? [] })),
  };
}
