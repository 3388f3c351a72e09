import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { systemHost } from "@turnkeeper/kernel";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { Benchmark, Case } from "../benchmark.ts";
import type { Folder } from "../folder.ts";
import { openRaw } from "../raw-database.ts";
import type { WriterReport, WriterSettings } from "../processes/writer.ts";

const alone = "transcript.append, nobody else there";
const raw = "raw, busy_timeout 5000";
const ours = "transcript.append";
/** As many processes as a shared host runs on one store; each appends as fast as it can. */
const writerCount = 8;
const script = fileURLToPath(new URL("../processes/writer.js", import.meta.url));

async function start(settings: WriterSettings): Promise<ChildProcess> {
  const child = fork(script, [JSON.stringify(settings)]);
  const ended = once(child, "exit").then(() => Promise.reject(new Error("A writer ended early.")));
  await Promise.race([once(child, "message"), ended]);
  ended.catch(() => {});
  return child;
}

/** Lets the writers begin together, and answers what each reports. */
async function write(all: readonly WriterSettings[]): Promise<readonly WriterReport[]> {
  const children = await Promise.all(all.map(start));
  const reports = children.map(async (child) => {
    const [report] = (await once(child, "message")) as [WriterReport];
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    return report;
  });
  for (const child of children) child.send("go");
  return await Promise.all(reports);
}

/** What the writers went through together: the worst loop of them, the appends of all. */
function busyCase(facts: Pick<Case, "name" | "role">, settings: WriterSettings, count: number): Case {
  return {
    ...facts,
    measure: async () => {
      const reports = await write(Array.from({ length: count }, () => settings));
      const firstError = reports.find((report) => report.firstError !== undefined)?.firstError;
      if (firstError !== undefined && facts.role === "ours") console.error(`busy: ${firstError}`);
      const sumOf = (of: (report: WriterReport) => number): number => reports.map(of).reduce((a, b) => a + b, 0);
      const rates = reports.map((report) => report.appendsPerSecond);
      return {
        "loop delay p99": [Math.max(...reports.map((report) => report.delayP99Ms))],
        "loop delay max": [Math.max(...reports.map((report) => report.delayMaxMs))],
        "longest wait": [Math.max(...reports.map((report) => report.longestWaitMs))],
        append: [
          1_000 /
            Math.max(
              sumOf((report) => report.appendsPerSecond),
              1e-3,
            ),
        ],
        fairness: [Math.min(...rates) / Math.max(...rates, 1e-3)],
        lost: [sumOf((report) => report.lostCount)],
      };
    },
    close: async () => {},
  };
}

/**
 * Longer than the five seconds after which a waiting write gives up, in a quick run too: a loop that stands still for
 * as long as the run lasts would else be told as shorter than it is.
 */
const durationMs = 6_000;

async function open(folder: Folder): Promise<readonly Case[]> {
  const [alonePath, oursPath, rawPath] = [folder.fresh("alone.db"), folder.fresh("own.db"), folder.fresh("raw.db")];
  for (const path of [alonePath, oursPath]) await (await openSqliteStore(path, { host: systemHost })).close();
  openRaw(rawPath, "FULL").close();
  return [
    busyCase({ name: alone, role: "limit" }, { kind: "ours", path: alonePath, durationMs }, 1),
    busyCase({ name: raw, role: "peer" }, { kind: "raw", path: rawPath, durationMs }, writerCount),
    busyCase({ name: ours, role: "ours" }, { kind: "ours", path: oursPath, durationMs }, writerCount),
  ];
}

export const busy: Benchmark = {
  name: "busy",
  title:
    "8 processes append (FULL) to one file, each as fast as it can: how long the worst of their event loops stands",
  metrics: [
    { name: "loop delay p99", unit: "ms", limit: alone },
    { name: "loop delay max", unit: "ms", limit: alone },
    { name: "longest wait", unit: "ms", limit: alone },
    { name: "append", unit: "ms", limit: raw },
    { name: "fairness", unit: "", limit: raw },
    { name: "lost", unit: "", limit: raw },
  ],
  goals: [
    { of: ours, metric: "loop delay max", against: { name: raw }, atMost: 0.05 },
    { of: ours, metric: "loop delay max", atMost: 60, meaning: "milliseconds" },
    { of: ours, metric: "longest wait", atMost: 1_000, meaning: "milliseconds, for one append" },
    // Their waiting costs the greedy handler nothing: one of its processes keeps the lock while the others stand.
    { of: ours, metric: "append", against: { name: raw }, atMost: 1 / 0.55, meaning: "0.55 times the rate" },
    { of: ours, metric: "lost", statistic: "max", atMost: 0 },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 1 : 3),
  open,
};
