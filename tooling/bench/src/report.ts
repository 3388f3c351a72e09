import type { Measurement } from "./measurement.ts";
import { rowsOf, verdictsOf } from "./verdict.ts";
import type { Row, Verdict } from "./verdict.ts";

function number(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 100
    ? value.toLocaleString("en", { maximumFractionDigits: 0 })
    : value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function tableOf(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const right = (column: number): boolean => column > 0 && head[column] !== "verdict";
  const all = [head, ...lines];
  const widths = head.map((_, column) => Math.max(3, ...all.map((line) => (line[column] ?? "").length)));
  const print = (line: readonly string[]): string =>
    `| ${line.map((cell, column) => (right(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0))).join(" | ")} |`;
  const rule = widths.map((width, column) => (right(column) ? `${"-".repeat(width - 1)}:` : "-".repeat(width)));
  return [print(head), print(rule), ...lines.map(print)].join("\n");
}

function rowLine(row: Row): readonly string[] {
  const ratio = row.ratio === undefined ? "" : `${number(row.ratio)}×`;
  return [
    `${row.metric}: ${row.name}`,
    `${number(row.p50)} ${row.unit}`,
    `${number(row.p99)} ${row.unit}`,
    ratio,
    String(row.count),
  ];
}

/** A goal in words: what of which case, against what, and how much at most. */
export function goalText({ goal }: Verdict): string {
  const { of, metric, against, statistic = "p50", atMost, meaning } = goal;
  const base = against && [against.metric ?? metric, ...(against.name === undefined ? [] : [`of ${against.name}`])];
  const bound = against ? `${number(atMost)}× ${base?.join(" ")}` : number(atMost);
  return `${metric} of ${of}, ${statistic}: at most ${bound}${meaning === undefined ? "" : ` (${meaning})`}`;
}

function verdictLine(verdict: Verdict): readonly string[] {
  const { goal, value, isMet } = verdict;
  const told = value === undefined ? "–" : `${number(value)}${goal.against ? "×" : ""}`;
  return [goalText(verdict), told, isMet === undefined ? "not measured" : isMet ? "met" : "MISSED"];
}

/** A measurement as people read it: Markdown. */
export function reportOf(measurement: Measurement): string {
  const { benchmark, skipped } = measurement;
  return [
    `## ${benchmark.name}: ${benchmark.title}`,
    "",
    tableOf(["case", "p50", "p99", "÷ limit", "n"], rowsOf(measurement).map(rowLine)),
    ...skipped.map(({ name, skipped: reason }) => `skipped: ${name}: ${reason}`),
    "",
    tableOf(["wanted", "found", "verdict"], verdictsOf(measurement).map(verdictLine)),
    "",
  ].join("\n");
}
