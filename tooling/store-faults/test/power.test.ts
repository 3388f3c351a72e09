import { expect, test } from "vitest";
import { runPowerCuts } from "../src/power/power-run.ts";
import { usesWorker, whyNoTracing } from "./worker.ts";

const worker = usesWorker();
const why = whyNoTracing();

// Without a tracer nobody knows what was written when.
test.skipIf(why)(
  "a store that loses power loses nothing it acknowledged, and grants no token again that fenced it",
  async () => {
    const { findings, ...reach } = await runPowerCuts(worker(), { states: 250, traces: 1, seed: 11, mode: "honest" });
    process.stdout.write(`${JSON.stringify(reach)}\n`);
    expect(findings).toEqual([]);
    expect(reach.bindingStates).toBeGreaterThan(200);
    expect(reach.appends).toBeGreaterThan(50);
    expect(reach.kept).toBeGreaterThan(10);
    expect(reach.syncs).toBeGreaterThan(50);
    expect(reach.resets).toBeGreaterThan(5);
  },
  600_000,
);

// Without a tracer nobody knows what was written when.
test.skipIf(why)(
  "control: acknowledged without waiting for the disk, appends are lost, and the audit finds it",
  async () => {
    const { findings } = await runPowerCuts(worker(), { states: 40, traces: 1, seed: 11, mode: "normal" });
    const lost = findings.flatMap(({ kind, detail }) => (kind === "lost" ? detail : []));
    expect(lost.filter((detail) => !detail.includes("of the spool"))).not.toEqual([]);
    expect(lost.filter((detail) => detail.includes("of the spool: entry"))).not.toEqual([]);
  },
  300_000,
);
