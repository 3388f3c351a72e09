import { systemHost } from "@turnkeeper/kernel";
import { createProgressClock } from "@turnkeeper/turn-liveness";
import type { Benchmark, Case } from "../benchmark.ts";

const limit = "property write";
const ours = "clock.progress(kind)";
const dateNow = "Date.now()";
const callCount = 500_000;

function nsPerCall(run: () => void): number {
  const before = process.hrtime.bigint();
  run();
  return Number(process.hrtime.bigint() - before) / callCount;
}

function caseOf(name: string, role: Case["role"], run: () => void): Case {
  for (let warmUp = 0; warmUp < 5; warmUp++) run();
  // Several short looks a round: the shortest ones had the core to themselves.
  const measure = async () => ({ call: Array.from({ length: 7 }, () => nsPerCall(run)) });
  return { name, role, measure, close: async () => {} };
}

function openCases(): readonly Case[] {
  const clock = createProgressClock({ host: systemHost });
  const counter = { generation: 0 };
  let lastMs = 0;
  const cases = [
    caseOf(limit, "limit", () => {
      for (let call = 0; call < callCount; call++) counter.generation++;
    }),
    caseOf(ours, "ours", () => {
      for (let call = 0; call < callCount; call++) clock.progress("delta");
    }),
    caseOf(dateNow, "peer", () => {
      for (let call = 0; call < callCount; call++) lastMs = Date.now();
    }),
  ];
  // Looked at, so that nothing of it may be left out.
  if (clock.snapshot().generation === 0 || counter.generation === 0 || lastMs === 0) throw new Error("Nothing ran.");
  return cases;
}

export const progress: Benchmark = {
  name: "progress",
  title: "saying that a turn moved, once for each delta of a model",
  metrics: [{ name: "call", unit: "ns", limit }],
  goals: [{ of: ours, metric: "call", against: { name: dateNow }, atMost: 0.15, isCpuBound: true }],
  roundCount: () => 9,
  open: async () => openCases(),
};
