import { expect, test } from "vitest";
import { faults, lyingDisk } from "../src/inject/fault.ts";
import { runInjections } from "../src/inject/inject-run.ts";
import { usesWorker, whyNoTracing } from "./worker.ts";

const worker = usesWorker();
const why = whyNoTracing();

// Only a tracer can let a system call fail.
test.skipIf(why)(
  "a store whose system calls fail ends in a code or goes on, and keeps all it acknowledged",
  async () => {
    const reports = await runInjections(worker(), { faults, pointCount: 2 });
    for (const { findings, ...reach } of reports)
      process.stdout.write(`${JSON.stringify({ findings: findings.length, ...reach })}
`);
    expect(reports.flatMap(({ findings }) => findings)).toEqual([]);
    const certain = new Set(faults.flatMap(({ name, isOfSpool }) => (isOfSpool ? name : [])));
    for (const { fault, hits, runs, acknowledgements } of reports) {
      expect(hits, `${fault} was met`).toBeGreaterThan(0);
      if (certain.has(fault)) expect(hits, `${fault} was met in every run`).toBe(runs);
      expect(acknowledgements, `${fault} met a store at work`).toBeGreaterThan(0);
    }
  },
  600_000,
);

// Only a tracer can let a system call fail.
test.skipIf(why)(
  "a failed sync seals the store: nothing is acknowledged after it",
  async () => {
    const chosen = faults.filter(({ name }) => name === "sync-eio");
    const [report] = await runInjections(worker(), { faults: chosen, pointCount: 8 });
    expect(report?.findings).toEqual([]);
    expect(report?.sealed).toBeGreaterThan(0);
  },
  300_000,
);

// Only a tracer can let a system call fail.
test.skipIf(why)(
  "control: a disk that says it has written what it has not is found out",
  async () => {
    const [report] = await runInjections(worker(), { faults: [lyingDisk], pointCount: 4, isEndedByFinding: true });
    expect(report?.findings).not.toEqual([]);
  },
  300_000,
);
