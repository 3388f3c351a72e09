// Prints a table and the verdicts of each benchmark; the options stand in run.mjs.
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { benchmarks } from "./benchmarks.ts";
import { measure } from "./measurement.ts";
import { reportOf } from "./report.ts";
import { rowsOf, verdictsOf } from "./verdict.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false }, json: { type: "string" } },
});
const unknown = positionals.filter((name) => !benchmarks.some((one) => one.name === name));
if (unknown.length > 0) {
  const names = benchmarks.map((one) => one.name).join(", ");
  throw new Error(`There is no benchmark ${unknown.join(", ")}; there are ${names}.`);
}
const wanted = benchmarks.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const effort = { isQuick: values.quick };

/** What else the numbers depend on. */
function machine(): Readonly<Record<string, unknown>> {
  return { node: process.version, cpuCount: cpus().length, cpu: cpus()[0]?.model.trim(), load: loadavg() };
}

const results: unknown[] = [];
console.log(`Node ${process.version}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)} at the start.`);
for (const benchmark of wanted) {
  const measurement = await measure(benchmark, effort);
  console.log(`\n${reportOf(measurement)}`);
  results.push({
    name: benchmark.name,
    rows: rowsOf(measurement),
    skipped: measurement.skipped,
    verdicts: verdictsOf(measurement),
  });
}
console.log(`Load ${loadavg()[0]?.toFixed(1)} at the end.`);
if (values.json !== undefined)
  writeFileSync(values.json, `${JSON.stringify({ machine: machine(), ...effort, results }, undefined, 2)}\n`);
