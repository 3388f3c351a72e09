import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV3 } from "@ai-sdk/provider";
import { systemHost } from "@turnkeeper/kernel";
import { resolveModel } from "@turnkeeper/models";
import { Agent, fetch } from "undici";
import type { Benchmark, Case, Effort } from "../benchmark.ts";
import { cpuOf } from "../stopwatch.ts";

const limit = "@ai-sdk/openai-compatible, doStream";
const ours = "resolveModel, doStream";
const chunkCount = 2_000;
const script = fileURLToPath(new URL("../processes/stream-server.js", import.meta.url));

async function read(model: LanguageModelV3): Promise<void> {
  const { stream } = await model.doStream({ prompt: [{ role: "user", content: [{ type: "text", text: "Go on." }] }] });
  let count = 0;
  for await (const part of stream) if (part.type === "text-delta") count++;
  if (count !== chunkCount) throw new Error(`${count} of ${chunkCount} deltas came.`);
}

async function caseOf(
  { name, role }: Pick<Case, "name" | "role">,
  model: LanguageModelV3,
  { isQuick }: Effort,
  close: () => Promise<void>,
): Promise<Case> {
  const readMany = async (times: number): Promise<void> => {
    for (let time = 0; time < times; time++) await read(model);
  };
  const times = isQuick ? 5 : 10;
  await readMany(times);
  const measure = async () => ({ chunk: [(await cpuOf(() => readMany(times))) / times / chunkCount] });
  return { name, role, measure, close };
}

export const stream: Benchmark = {
  name: "stream",
  title: "reading a model's answer of 2,000 deltas: what is ours on top of the SDK's client",
  metrics: [{ name: "chunk", unit: "µs CPU", limit }],
  goals: [{ of: ours, metric: "chunk", against: { name: limit }, atMost: 1.25, isCpuBound: true }],
  roundCount: ({ isQuick }) => (isQuick ? 7 : 11),
  open: async (_folder, effort) => {
    const server = fork(script, [String(chunkCount)]);
    const [port] = (await once(server, "message")) as [number];
    const baseURL = `http://127.0.0.1:${port}/v1`;
    const dispatcher = new Agent();
    const send = (url: unknown, init: object): Promise<Response> =>
      fetch(url as string, { ...init, dispatcher }) as unknown as Promise<Response>;
    const plain = createOpenAICompatible({ name: "bench", baseURL, fetch: send as typeof globalThis.fetch });
    const resolved = await resolveModel("openai-compatible/m", {
      host: systemHost,
      providers: { "openai-compatible": { baseUrl: baseURL } },
    });
    const close = async (): Promise<void> => {
      await resolved.close();
      server.disconnect();
    };
    return [
      await caseOf({ name: limit, role: "limit" }, plain.chatModel("m"), effort, () => dispatcher.destroy()),
      await caseOf({ name: ours, role: "ours" }, resolved.languageModel, effort, close),
    ];
  },
};
