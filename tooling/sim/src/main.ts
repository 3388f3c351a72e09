// pnpm sim [--seeds N] [--first SEED] [--steps N]: runs seeds until done, and prints what was reached and every violation.
import { parseArgs } from "node:util";
import { World } from "./world.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "200" },
    first: { type: "string", default: "1" },
    steps: { type: "string", default: "120" },
  },
});
const first = Number(values.first);
const seeds = Number(values.seeds);
const reached: Record<string, number> = {};
let violating = 0;
for (let seed = first; seed < first + seeds; seed++) {
  const report = await new World(seed).run(Number(values.steps));
  for (const [what, count] of Object.entries(report.reached)) reached[what] = (reached[what] ?? 0) + count;
  if (report.violations.length === 0) continue;
  violating++;
  console.error(`seed ${seed}:\n${report.violations.map((one) => `  ${one}`).join("\n")}`);
}
console.log(`${seeds} seeds, ${violating} with violations; replay one with --first SEED --seeds 1`);
for (const [what, count] of Object.entries(reached).toSorted(([left], [right]) => left.localeCompare(right)))
  console.log(`  ${what}: ${count}`);
process.exitCode = violating === 0 ? 0 : 1;
