import type { AppendTarget } from "../append-target.ts";
import { openRawTarget, openStoreTarget } from "../append-target.ts";
import type { Benchmark, Case, Effort, Skipped } from "../benchmark.ts";
import type { Folder } from "../folder.ts";
import { openJsonlTarget } from "../jsonl-target.ts";
import { openLanggraphTarget } from "../langgraph-target.ts";
import { missingPeers } from "../peers.ts";
import { cpuOf, timesOf } from "../stopwatch.ts";

const limit = "raw all() and JSON.parse";
const ours = "transcript.load";
const jsonl = "JSONL";
const langgraph = "LangGraph SqliteSaver.getTuple";

const loadCount = 5;
const sizesOf = ({ isQuick }: Effort): readonly number[] => (isQuick ? [1_000] : [1_000, 10_000]);

function loadCase(facts: Pick<Case, "name" | "role">, sizes: readonly number[], target: AppendTarget): Case {
  const measure = async (): Promise<Record<string, readonly number[]>> => {
    const samples: Record<string, readonly number[]> = {};
    for (const size of sizes) {
      globalThis.gc?.();
      const loadOnce = async (): Promise<void> => {
        const found = await target.load(`s${size}`);
        if (found < size) throw new Error(`${facts.name} found ${found} of ${size} messages.`);
      };
      const cpuUs = await cpuOf(async () => {
        samples[`load ${size}`] = (await timesOf(loadCount, loadOnce)).map((timeUs) => timeUs / 1_000);
      });
      samples[`CPU ${size}`] = [cpuUs / loadCount / 1_000];
    }
    return samples;
  };
  return { ...facts, measure, close: () => target.close() };
}

async function open(folder: Folder, effort: Effort): Promise<readonly (Case | Skipped)[]> {
  const sizes = sizesOf(effort);
  const sessions = new Map(sizes.map((size) => [`s${size}`, size]));
  return [
    loadCase({ name: limit, role: "limit" }, sizes, openRawTarget(folder.fresh("raw.db"), sessions)),
    loadCase({ name: ours, role: "ours" }, sizes, await openStoreTarget(folder.fresh("own.db"), sessions)),
    loadCase({ name: jsonl, role: "peer" }, sizes, openJsonlTarget(folder.fresh("lines"), sessions)),
    missingPeers(langgraph, "@langchain/langgraph-checkpoint-sqlite") ??
      loadCase(
        { name: langgraph, role: "peer" },
        sizes,
        await openLanggraphTarget(folder.fresh("langgraph.db"), sessions),
      ),
  ];
}

export const load: Benchmark = {
  name: "load",
  title: "a whole session of messages of 1 KB",
  metrics: sizesOf({ isQuick: false }).flatMap((size) => [
    { name: `load ${size}`, unit: "ms", limit },
    { name: `CPU ${size}`, unit: "ms", limit },
  ]),
  goals: [
    { of: ours, metric: "load 1000", against: { name: limit }, atMost: 1.5 },
    { of: ours, metric: "CPU 1000", against: { name: limit }, atMost: 1.5, isCpuBound: true },
    { of: ours, metric: "load 10000", against: { name: limit }, atMost: 1.5 },
    { of: ours, metric: "load 1000", against: { name: langgraph }, atMost: 1 / 8 },
    { of: ours, metric: "load 10000", against: { name: langgraph }, atMost: 1 / 8 },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 5 : 9),
  open,
};
