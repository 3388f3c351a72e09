import type { AppendTarget } from "../append-target.ts";
import { openRawTarget, openStoreTarget } from "../append-target.ts";
import type { Benchmark, Case, Effort, Skipped } from "../benchmark.ts";
import type { Folder } from "../folder.ts";
import { openJsonlTarget } from "../jsonl-target.ts";
import { openLanggraphTarget } from "../langgraph-target.ts";
import { missingPeers } from "../peers.ts";
import { cpuOf, timesOf } from "../stopwatch.ts";

const limit = "raw row, one commit each";
const ours = "transcript.append";
const jsonl = "JSONL and fdatasync";
const langgraph = "LangGraph SqliteSaver.put";

const sizesOf = ({ isQuick }: Effort): readonly number[] => (isQuick ? [10, 1_000, 10_000] : [10, 1_000, 100_000]);
const countOf = ({ isQuick }: Effort): number => (isQuick ? 30 : 40);

/** As many sessions of a size as keep it that size: small ones grow by one message a round. */
function sessionsOf(sizes: readonly number[], count: number): ReadonlyMap<string, number> {
  return new Map(
    sizes.flatMap((size) => {
      const sessionCount = size <= 10 ? count : size <= 1_000 ? 4 : 1;
      return Array.from({ length: sessionCount }, (_, index) => [`s${size}-${index}`, size] as const);
    }),
  );
}

async function appendCase(
  facts: Pick<Case, "name" | "role">,
  sizes: readonly number[],
  count: number,
  open: (sessions: ReadonlyMap<string, number>) => AppendTarget | Promise<AppendTarget>,
): Promise<Case> {
  const sessions = sessionsOf(sizes, count);
  const target = await open(sessions);
  const idsOf = (size: number): readonly string[] =>
    [...sessions].filter(([, own]) => own === size).map(([sessionId]) => sessionId);
  const groups = sizes.map((size) => ({ size, ids: idsOf(size) }));
  let round = 0;
  const samplesOf = async (): Promise<Record<string, readonly number[]>> => {
    const samples: Record<string, readonly number[]> = {};
    // Another size first in each round, as with the cases.
    const first = round++ % groups.length;
    for (const { size, ids } of [...groups.slice(first), ...groups.slice(0, first)]) {
      const append = (index: number): unknown => target.append(ids[index % ids.length] ?? "");
      const cpuUs = await cpuOf(async () => {
        samples[`append @${size}`] = await timesOf(count, append);
      });
      samples[`CPU @${size}`] = [cpuUs / count];
    }
    return samples;
  };
  await samplesOf();
  return { ...facts, measure: samplesOf, close: () => target.close() };
}

async function open(folder: Folder, effort: Effort): Promise<readonly (Case | Skipped)[]> {
  const [sizes, count] = [sizesOf(effort), countOf(effort)];
  return [
    await appendCase({ name: limit, role: "limit" }, sizes, count, (all) => openRawTarget(folder.fresh("raw.db"), all)),
    await appendCase({ name: ours, role: "ours" }, sizes, count, (all) => openStoreTarget(folder.fresh("own.db"), all)),
    await appendCase({ name: jsonl, role: "peer" }, sizes, count, (all) => openJsonlTarget(folder.fresh("lines"), all)),
    missingPeers(langgraph, "@langchain/langgraph-checkpoint-sqlite") ??
      (await appendCase({ name: langgraph, role: "peer" }, [10, 1_000], effort.isQuick ? 4 : 10, (all) =>
        openLanggraphTarget(folder.fresh("langgraph.db"), all),
      )),
  ];
}

const everySize = [10, 1_000, 10_000, 100_000];

export const append: Benchmark = {
  name: "append",
  title: "one message of 1 KB, durable (FULL), into a session of so many",
  metrics: everySize.flatMap((size) => [
    { name: `append @${size}`, unit: "µs", limit },
    { name: `CPU @${size}`, unit: "µs", limit },
  ]),
  goals: [
    ...everySize.map((size) => ({ of: ours, metric: `append @${size}`, against: { name: limit }, atMost: 1.5 })),
    ...everySize.slice(2).map((size) => ({
      of: ours,
      metric: `append @${size}`,
      against: { metric: "append @10" },
      atMost: 1.15,
      meaning: "flat",
    })),
    ...everySize.slice(2).map((size) => ({
      of: ours,
      metric: `CPU @${size}`,
      against: { metric: "CPU @10" },
      atMost: 1.15,
      meaning: "flat",
      isCpuBound: true,
    })),
    { of: ours, metric: "append @10", against: { name: langgraph }, atMost: 1 },
    { of: ours, metric: "append @1000", against: { name: langgraph }, atMost: 0.02 },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 5 : 7),
  open,
};
