import type { Metric } from "./benchmark.ts";
import type { Goal } from "./goal.ts";
import type { Measured, Measurement } from "./measurement.ts";
import { median, percentile, ratioOfRounds } from "./statistics.ts";

/** One line of a benchmark's table. */
export interface Row {
  readonly metric: string;
  readonly unit: string;
  readonly name: string;
  readonly role: Measured["role"];
  readonly p50: number;
  readonly p99: number;
  /** Times the limit, p50 by p50 of the same round. Absent where the limit does not have it, or has none of it. */
  readonly ratio?: number;
  /** How many values stand behind it. */
  readonly count: number;
}

export interface Verdict {
  readonly goal: Goal;
  /** Absent: a case it needs was skipped. */
  readonly value?: number;
  readonly isMet?: boolean;
}

function valuesOf(measured: Measured, metric: string): readonly number[] {
  return measured.rounds.flatMap((samples) => samples[metric] ?? []);
}

/** The p50 of each round, for those that measured the metric. */
function roundsOf(measured: Measured, metric: string): readonly number[] {
  return measured.rounds.flatMap((samples) => {
    const values = samples[metric];
    return values && values.length > 0 ? [percentile(values, 0.5)] : [];
  });
}

function rowOf(measured: Measured, metric: Metric, limit: Measured | undefined): Row | undefined {
  const values = valuesOf(measured, metric.name);
  if (values.length === 0) return undefined;
  const rounds = roundsOf(measured, metric.name);
  const base = limit ? roundsOf(limit, metric.name) : [];
  const ratio = base.length === rounds.length ? ratioOfRounds(rounds, base) : Number.NaN;
  return {
    metric: metric.name,
    unit: metric.unit,
    name: measured.name,
    role: measured.role,
    p50: median(rounds),
    p99: percentile(values, 0.99),
    ...(Number.isFinite(ratio) ? { ratio } : {}),
    count: values.length,
  };
}

/** The table of a measurement: metric by metric, the limit first, as its benchmark lists them. */
export function rowsOf({ benchmark, cases }: Measurement): readonly Row[] {
  return benchmark.metrics.flatMap((metric) => {
    const limit = cases.find(({ name }) => name === metric.limit);
    return cases.flatMap((one) => rowOf(one, metric, limit) ?? []);
  });
}

function statisticOf(measured: Measured, metric: string, statistic: Goal["statistic"]): number {
  const values = valuesOf(measured, metric);
  if (statistic === "p99") return percentile(values, 0.99);
  return statistic === "max" ? Math.max(...values) : median(roundsOf(measured, metric));
}

function valueOf(goal: Goal, of: Measured, against: Measured | undefined): number | undefined {
  const { metric, statistic = "p50" } = goal;
  const baseMetric = goal.against?.metric ?? metric;
  if (valuesOf(of, metric).length === 0) return undefined;
  if (!goal.against) return statisticOf(of, metric, statistic);
  if (!against || valuesOf(against, baseMetric).length === 0) return undefined;
  if (statistic === "p50") return ratioOfRounds(roundsOf(of, metric), roundsOf(against, baseMetric));
  return statisticOf(of, metric, statistic) / statisticOf(against, baseMetric, statistic);
}

/** Holds a measurement against its goals; `slack` (at least 1) is what a test allows a loaded machine. */
export function verdictsOf({ benchmark, cases }: Measurement, slack = 1): readonly Verdict[] {
  const caseOf = (name: string): Measured | undefined => cases.find((one) => one.name === name);
  return benchmark.goals.map((goal) => {
    const of = caseOf(goal.of);
    const value = of && valueOf(goal, of, goal.against?.name === undefined ? of : caseOf(goal.against.name));
    return value === undefined ? { goal } : { goal, value, isMet: value <= goal.atMost * slack };
  });
}
