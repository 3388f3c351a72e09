// Runs one of the three and prints what was reached and every finding; the options stand in run.mjs.
import { parseArgs } from "node:util";
import type { Finding } from "./audit.ts";
import { faults, lyingDisk } from "./inject/fault.ts";
import { runInjections } from "./inject/inject-run.ts";
import { runKills } from "./kill/kill-run.ts";
import { runPowerCuts } from "./power/power-run.ts";
import { bundleWorker } from "./worker-bundle.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "200" },
    processes: { type: "string", default: "3" },
    sessions: { type: "string", default: "16" },
    lanes: { type: "string", default: "8" },
    states: { type: "string", default: "1000" },
    traces: { type: "string", default: "4" },
    points: { type: "string", default: "30" },
    fault: { type: "string" },
    seed: { type: "string", default: "1" },
    mode: { type: "string", default: "honest" },
  },
});
const seed = Number(values.seed);
const bundle = await bundleWorker();

function show(findings: readonly Finding[], counts: Readonly<Record<string, unknown>>): void {
  const listedMax = 40;
  for (const { kind, detail } of findings.slice(0, listedMax)) console.error(`${kind}: ${detail}`);
  console.log(JSON.stringify(counts));
  if (findings.length > 0) process.exitCode = 1;
}

async function run(part: string | undefined): Promise<void> {
  switch (part) {
    case "kill": {
      const { findings, ...counts } = await runKills(bundle, {
        rounds: Number(values.rounds),
        processCount: Number(values.processes),
        sessionCount: Number(values.sessions),
        laneCount: Number(values.lanes),
        seed,
        mode: values.mode === "early" ? "early" : "honest",
      });
      return show(findings, { findings: findings.length, ...counts });
    }
    case "power": {
      const { findings, ...counts } = await runPowerCuts(bundle, {
        states: Number(values.states),
        traces: Number(values.traces),
        seed,
        mode: values.mode === "normal" ? "normal" : "honest",
      });
      return show(findings, { findings: findings.length, ...counts });
    }
    case "inject": {
      const wanted = values.mode === "lying" ? [lyingDisk] : faults;
      const chosen = wanted.filter(({ name }) => values.fault === undefined || name === values.fault);
      for (const fault of chosen) {
        const reports = await runInjections(bundle, { faults: [fault], pointCount: Number(values.points) });
        for (const { findings, ...counts } of reports) show(findings, { findings: findings.length, ...counts });
      }
      return;
    }
    default:
      throw new Error(`Name kill, power or inject; got ${part ?? "nothing"}.`);
  }
}

try {
  await run(positionals[0]);
} finally {
  await bundle.remove();
}
