import type { LanguageModelV3 } from "@ai-sdk/provider";
import { createAgent } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { Benchmark, Case, Effort, Skipped } from "../benchmark.ts";
import { startModelServer } from "../model-server.ts";
import type { ModelServer } from "../model-server.ts";
import { missingPeers, peer } from "../peers.ts";
import { cpuOf } from "../stopwatch.ts";

const limit = "@ai-sdk/openai-compatible, doStream";
const ours = "agent.run, a store in memory";
const onDisk = "agent.run, its store on the disk";
const theirs = "ai, streamText";

/** Of what is streamed: so many deltas of so many characters, so often in a round. */
interface Answer {
  readonly metric: string;
  readonly chunkCount: number;
  readonly length: number;
  readonly times: number;
  /** What the CPU time is divided by, beside the times. */
  readonly per: number;
}

const chunk = { metric: "a chunk of 2,000", chunkCount: 2_000, length: 8, per: 2_000 };
const turn = { metric: "a turn of 1 chunk", chunkCount: 1, length: 8, per: 1 };
// Words of a real model are shorter; with these two megabytes are no matter of minutes.
const small = { metric: "a KB of 200 KB", chunkCount: 2_000, length: 100, per: 200 };
const large = { metric: "a KB of 2 MB", chunkCount: 20_000, length: 100, per: 2_000 };

function answersOf({ isQuick }: Effort): readonly Answer[] {
  return [
    { ...chunk, times: isQuick ? 2 : 8 },
    { ...turn, times: isQuick ? 20 : 150 },
    { ...small, times: isQuick ? 2 : 5 },
    { ...large, times: 1 },
  ];
}

/** Reads one answer to its end, by whatever reads it, and answers how many characters came. */
type Read = (answer: Answer) => Promise<number>;

async function caseOf(
  { name, role, close }: Pick<Case, "name" | "role" | "close">,
  effort: Effort,
  read: Read,
): Promise<Case> {
  const readMany = async (answer: Answer): Promise<void> => {
    for (let time = 0; time < answer.times; time++) {
      const length = await read(answer);
      if (length < answer.chunkCount * answer.length) throw new Error(`${name} read ${length} characters.`);
    }
  };
  const measure = async (): Promise<Record<string, readonly number[]>> => {
    const values: Record<string, readonly number[]> = {};
    for (const answer of answersOf(effort)) {
      values[answer.metric] = [(await cpuOf(() => readMany(answer))) / answer.times / answer.per];
    }
    return values;
  };
  await measure();
  return { name, role, measure, close };
}

const modelId = ({ chunkCount, length }: Answer): string => `${chunkCount}x${length}`;

async function readAlone(model: LanguageModelV3): Promise<number> {
  const { stream } = await model.doStream({ prompt: [{ role: "user", content: [{ type: "text", text: "Go on." }] }] });
  let length = 0;
  for await (const part of stream) if (part.type === "text-delta") length += part.delta.length;
  return length;
}

/** A turn in a session of its own, whose events are read as they come. */
async function agentCase(name: string, effort: Effort, server: ModelServer, store: StateStore): Promise<Case> {
  const opened = await Promise.all(
    answersOf(effort).map(async (answer) => {
      const model = await server.resolve(modelId(answer));
      return { metric: answer.metric, model, agent: await createAgent({ store, model }) };
    }),
  );
  const agents = new Map(opened.map(({ metric, agent }) => [metric, agent]));
  let sessionCount = 0;
  const read: Read = async ({ metric }) => {
    const call = agents.get(metric)?.run(`s-${sessionCount++}`, "Go on.");
    let length = 0;
    for await (const event of call ?? []) if (event.type === "text.delta") length += event.text.length;
    const outcome = (await call?.result)?.outcome;
    if (outcome !== "answered") throw new Error(`The turn was ${outcome}.`);
    return length;
  };
  const close = async (): Promise<void> => {
    for (const { agent, model } of opened) {
      await agent.close();
      await model.close();
    }
    await store.close();
  };
  return caseOf({ name, role: "ours", close }, effort, read);
}

async function streamTextCase(effort: Effort, server: ModelServer): Promise<Case | Skipped> {
  const missing = missingPeers(theirs, "ai");
  if (missing) return missing;
  const { streamText } = peer("ai");
  const read: Read = async (answer) => {
    const { textStream } = streamText({ model: server.plain(modelId(answer)), prompt: "Go on." });
    let length = 0;
    for await (const text of textStream) length += text.length;
    return length;
  };
  return caseOf({ name: theirs, role: "peer", close: async () => {} }, effort, read);
}

const metrics = [
  { ...chunk, unit: "µs CPU" },
  { ...turn, unit: "µs CPU" },
  { ...small, unit: "µs CPU" },
  { ...large, unit: "µs CPU" },
];

export const loop: Benchmark = {
  name: "loop",
  title: "a turn that reads a model's answer over loopback and hands on its events, beside who only reads it",
  metrics: metrics.map(({ metric, unit }) => ({ name: metric, unit, limit })),
  goals: [
    { of: ours, metric: chunk.metric, against: { name: limit }, atMost: 1.25, isCpuBound: true },
    { of: ours, metric: chunk.metric, against: { name: theirs }, atMost: 0.5, isCpuBound: true },
    { of: ours, metric: turn.metric, against: { name: theirs }, atMost: 1, isCpuBound: true },
    {
      of: ours,
      metric: large.metric,
      against: { metric: small.metric },
      atMost: 1.2,
      meaning: "ten times the answer costs ten times as much",
      isCpuBound: true,
    },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 3 : 7),
  open: async (folder, effort) => {
    const server = await startModelServer();
    const close = async (): Promise<void> => server[Symbol.asyncDispose]();
    const store = await openSqliteStore(folder.fresh("loop.db"), { host: systemHost });
    return [
      await caseOf({ name: limit, role: "limit", close }, effort, (answer) => readAlone(server.plain(modelId(answer)))),
      await agentCase(ours, effort, server, createMemoryStore({ host: systemHost })),
      await agentCase(onDisk, effort, server, store),
      await streamTextCase(effort, server),
    ];
  },
};
