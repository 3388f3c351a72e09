import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Benchmark, Case, Effort, Skipped } from "../benchmark.ts";
import { missingPeers } from "../peers.ts";
import type { TimersReport, TimersSettings } from "../processes/timers.ts";

const limit = "setInterval";
const ours = "sharedScheduler";
const toad = "toad-scheduler";
const script = fileURLToPath(new URL("../processes/timers.js", import.meta.url));
const run = promisify(execFile);

async function report(settings: TimersSettings): Promise<TimersReport> {
  const { stdout } = await run(process.execPath, ["--expose-gc", script, JSON.stringify(settings)]);
  return JSON.parse(stdout) as TimersReport;
}

const countsOf = ({ isQuick }: Effort): readonly number[] => (isQuick ? [1_000] : [1_000, 10_000]);
/** Real ones are 30 s and 60 s: a tenth of that, so that a run ends in time. */
const periodOf = ({ isQuick }: Effort): number => (isQuick ? 600 : 3_000);

function timersCase(name: string, role: Case["role"], kind: TimersSettings["kind"], effort: Effort): Case {
  return {
    name,
    role,
    measure: async () => {
      const samples: Record<string, readonly number[]> = {};
      for (const count of countsOf(effort)) {
        const { cpuUs, wakeUpsPerSecond, bytesEach } = await report({ kind, count, periodMs: periodOf(effort) });
        samples[`CPU, ${count}`] = [cpuUs / (periodOf(effort) / 1_000) / 1_000];
        samples[`wake-ups, ${count}`] = [wakeUpsPerSecond];
        samples[`heap, ${count}`] = [bytesEach];
      }
      return samples;
    },
    close: async () => {},
  };
}

const counts = countsOf({ isQuick: false });

export const timers: Benchmark = {
  name: "timers",
  title: "periodic timers, half of 3 s and half of 6 s (a tenth of the real periods), made over one period",
  metrics: counts.flatMap((count) => [
    { name: `CPU, ${count}`, unit: "ms/s", limit },
    { name: `wake-ups, ${count}`, unit: "/s", limit },
    { name: `heap, ${count}`, unit: "B each", limit },
  ]),
  goals: counts.flatMap((count) => [
    { of: ours, metric: `CPU, ${count}`, against: { name: limit }, atMost: 0.6 },
    { of: ours, metric: `wake-ups, ${count}`, atMost: 20, meaning: "a second", isCpuBound: true },
    { of: ours, metric: `heap, ${count}`, atMost: 100, meaning: "bytes" },
  ]),
  roundCount: ({ isQuick }) => (isQuick ? 2 : 5),
  open: async (_folder, effort): Promise<readonly (Case | Skipped)[]> => [
    timersCase(limit, "limit", "setInterval", effort),
    timersCase(ours, "ours", "ours", effort),
    ...(effort.isQuick
      ? [{ name: toad, skipped: "not in a quick run" }]
      : [missingPeers(toad, "toad-scheduler") ?? timersCase(toad, "peer", "toad-scheduler", effort)]),
  ],
};
