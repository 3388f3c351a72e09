import { openRawTarget, openStoreTarget } from "../append-target.ts";
import type { Benchmark, Case, Effort } from "../benchmark.ts";
import type { Folder } from "../folder.ts";
import { countFullCommits } from "../commit-counter.ts";
import type { CommitCounter } from "../commit-counter.ts";
import { nowNs } from "../stopwatch.ts";

const limit = "raw, one transaction each";
const grouped = "raw, one transaction for all";
const ours = "transcript.append";
const concurrencies = [1, 8, 64];
const sessionIds: readonly string[] = Array.from({ length: 64 }, (_, index) => `session-${index}`);
const sessions: ReadonlyMap<string, number> = new Map(sessionIds.map((sessionId) => [sessionId, 10]));

const appendCount = ({ isQuick }: Effort): number => (isQuick ? 128 : 384);

type AppendEach = (ids: readonly string[], timesEach: number) => unknown;

/** `appendEach` puts so many messages into each of the sessions, which do not wait for one another. */
async function manyCase(
  facts: Pick<Case, "name" | "role" | "close">,
  effort: Effort,
  commits: CommitCounter,
  appendEach: AppendEach,
): Promise<Case> {
  const measure = async (): Promise<Record<string, readonly number[]>> => {
    const samples: Record<string, readonly number[]> = {};
    for (const concurrency of concurrencies) {
      const timesEach = appendCount(effort) / concurrency;
      commits.take();
      const beforeNs = nowNs();
      await appendEach(sessionIds.slice(0, concurrency), timesEach);
      samples[`append, ${concurrency} at once`] = [(nowNs() - beforeNs) / 1_000 / appendCount(effort)];
      samples[`commits, ${concurrency} at once`] = [commits.take() / appendCount(effort)];
    }
    return samples;
  };
  await measure();
  return { ...facts, measure };
}

async function open(folder: Folder, effort: Effort): Promise<readonly Case[]> {
  const commits = countFullCommits();
  const single = openRawTarget(folder.fresh("raw.db"), sessions);
  const group = openRawTarget(folder.fresh("group.db"), sessions);
  const store = await openStoreTarget(folder.fresh("own.db"), sessions);
  const closeStore = async (): Promise<void> => {
    await store.close();
    commits[Symbol.dispose]();
  };
  return [
    await manyCase({ name: limit, role: "limit", close: () => single.close() }, effort, commits, (ids, timesEach) => {
      for (let time = 0; time < timesEach; time++) for (const sessionId of ids) single.append(sessionId);
    }),
    await manyCase({ name: grouped, role: "limit", close: () => group.close() }, effort, commits, (ids, timesEach) => {
      for (let time = 0; time < timesEach; time++) group.appendAll(ids);
    }),
    await manyCase({ name: ours, role: "ours", close: closeStore }, effort, commits, async (ids, timesEach) => {
      const session = async (sessionId: string): Promise<void> => {
        for (let time = 0; time < timesEach; time++) await store.append(sessionId);
      };
      await Promise.all(ids.map(session));
    }),
  ];
}

export const appendMany: Benchmark = {
  name: "append-many",
  title: "durable appends of 1 KB (FULL) from sessions that run at once: wall time of each",
  metrics: concurrencies.flatMap((concurrency) => [
    { name: `append, ${concurrency} at once`, unit: "µs", limit },
    { name: `commits, ${concurrency} at once`, unit: "each", limit },
  ]),
  goals: [
    { of: ours, metric: "append, 1 at once", against: { name: limit }, atMost: 1.2 },
    { of: ours, metric: "append, 8 at once", against: { name: limit }, atMost: 1 / 3.5, meaning: "3.5 times the rate" },
    { of: ours, metric: "append, 64 at once", against: { name: limit }, atMost: 1 / 10, meaning: "10 times the rate" },
    { of: ours, metric: "commits, 8 at once", atMost: 1 / 3.5, meaning: "an append", isCpuBound: true },
    { of: ours, metric: "commits, 64 at once", atMost: 1 / 10, meaning: "an append", isCpuBound: true },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 5 : 9),
  open,
};
