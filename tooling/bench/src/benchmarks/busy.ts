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

function busyCase(facts: Pick<Case, "name" | "role">, settings: WriterSettings, isHammered: boolean): Case {
  const hammer: WriterSettings = { ...settings, kind: "hammer" };
  return {
    ...facts,
    measure: async () => {
      const [report] = await write(isHammered ? [settings, hammer] : [settings]);
      if (!report) throw new Error("The writer did not report.");
      if (report.firstError !== undefined && facts.role === "ours") console.error(`busy: ${report.firstError}`);
      return {
        "loop delay p99": [report.delayP99Ms],
        "loop delay max": [report.delayMaxMs],
        append: [1_000 / Math.max(report.appendsPerSecond, 1e-3)],
        lost: [report.lostCount],
      };
    },
    close: async () => {},
  };
}

async function open(folder: Folder, { isQuick }: { readonly isQuick: boolean }): Promise<readonly Case[]> {
  const durationMs = isQuick ? 1_500 : 6_000;
  const [alonePath, oursPath, rawPath] = [folder.fresh("alone.db"), folder.fresh("own.db"), folder.fresh("raw.db")];
  for (const path of [alonePath, oursPath]) await (await openSqliteStore(path, { host: systemHost })).close();
  openRaw(rawPath, "FULL").close();
  return [
    busyCase({ name: alone, role: "limit" }, { kind: "ours", path: alonePath, durationMs }, false),
    busyCase({ name: raw, role: "peer" }, { kind: "raw", path: rawPath, durationMs }, true),
    busyCase({ name: ours, role: "ours" }, { kind: "ours", path: oursPath, durationMs }, true),
  ];
}

export const busy: Benchmark = {
  name: "busy",
  title: "appends (FULL) while another process writes to the same file without a pause: how long the event loop stands",
  metrics: [
    { name: "loop delay p99", unit: "ms", limit: alone },
    { name: "loop delay max", unit: "ms", limit: alone },
    { name: "append", unit: "ms", limit: alone },
    { name: "lost", unit: "", limit: raw },
  ],
  goals: [
    { of: ours, metric: "loop delay max", against: { name: raw }, atMost: 0.05 },
    { of: ours, metric: "loop delay max", atMost: 60, meaning: "milliseconds" },
    { of: ours, metric: "lost", statistic: "max", atMost: 0 },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 2 : 5),
  open,
};
