import type { LanguageModelV3, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { createAgent, defineTool } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import type { EntryDraft, StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { Benchmark, Case, Effort } from "../benchmark.ts";
import type { Folder } from "../folder.ts";
import { nowNs } from "../stopwatch.ts";

const short = "agent.run, 100 messages before";
const long = "agent.run, 10,000 messages before";

const stepCount = ({ isQuick }: Effort): number => (isQuick ? 40 : 80);

const usage = {
  inputTokens: { total: 50_000, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

/** A model that calls a tool so many times, and then answers; each count of its provider is far below its window. */
function callingModel(steps: number): ResolvedModel {
  let requestCount = 0;
  const partsOf = (request: number): readonly LanguageModelV3StreamPart[] => {
    const isLast = request % (steps + 1) === 0;
    const toolCallId = `call-${request}`;
    return [
      ...(isLast
        ? ([
            { type: "text-start", id: "t" },
            { type: "text-delta", id: "t", delta: "Done." },
            { type: "text-end", id: "t" },
          ] as const)
        : ([{ type: "tool-call", toolCallId, toolName: "look", input: JSON.stringify({ request }) }] as const)),
      { type: "finish", usage, finishReason: { unified: isLast ? "stop" : "tool-calls", raw: undefined } },
    ];
  };
  const languageModel: LanguageModelV3 = {
    specificationVersion: "v3",
    provider: "bench",
    modelId: "calling",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("This model streams only.")),
    doStream: async () => {
      const parts = partsOf(++requestCount);
      return {
        stream: new ReadableStream<LanguageModelV3StreamPart>({
          start(controller) {
            for (const part of parts) controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
  };
  const close = async (): Promise<void> => {};
  return { id: "bench/calling", languageModel, contextWindowTokens: 1_000_000, close, [Symbol.asyncDispose]: close };
}

const look = defineTool({
  name: "look",
  description: "Looks.",
  input: { "~standard": { version: 1, vendor: "bench", validate: (value) => ({ value: value as object }) } },
  jsonSchema: { type: "object" },
  execute: async (_input: object) => "a line of text",
});

/** A session in which so much was said before. */
async function storeWith(path: string, messageCount: number): Promise<StateStore> {
  const store = await openSqliteStore(path, { host: systemHost });
  const holder = { holderId: "h", instanceId: "i", host: "bench", bootId: "b", pid: 1 };
  const granted = await store.leases.acquire({ sessionId: "s", holder, ttlMs: 60_000 });
  if (granted.kind !== "granted") throw new Error(`The session was ${granted.kind}.`);
  const grant = { sessionId: "s", holderId: "h", fencingToken: granted.fencingToken };
  await store.turns.begin(grant, "before", []);
  const entries = Array.from({ length: messageCount }, (_, index): EntryDraft => {
    const text = `message ${index}: ${"a few words ".repeat(5)}`;
    const body =
      index % 2 === 0
        ? ({ role: "user", text } as const)
        : ({ role: "assistant", parts: [{ type: "text", text }] } as const);
    return { key: `before/${index}`, body };
  });
  await store.transcript.append({ grant, turnId: "before", entries });
  await store.turns.end({ grant, turnId: "before", outcome: "answered", release: true });
  return store;
}

async function caseOf(
  { name, role }: Pick<Case, "name" | "role">,
  messageCount: number,
  folder: Folder,
  effort: Effort,
): Promise<Case> {
  const steps = stepCount(effort);
  const store = await storeWith(folder.fresh(`${messageCount}.db`), messageCount);
  const agent = await createAgent({ store, model: callingModel(steps), tools: [look] });
  const run = async (): Promise<number> => {
    const beforeNs = nowNs();
    const { outcome, detail } = await agent.run("s", "Go on.").result;
    if (outcome !== "answered") throw new Error(`The turn was ${outcome}: ${detail}`);
    return (nowNs() - beforeNs) / 1_000 / (steps + 1);
  };
  // The first turn loads the conversation; the code is compiled by the second.
  await run();
  await run();
  const close = async (): Promise<void> => {
    await agent.close();
    await store.close();
  };
  return { name, role, measure: async () => ({ step: [await run()] }), close };
}

export const step: Benchmark = {
  name: "step",
  title: "one step of a turn (model, tool, two appends, whether to summarise), behind a short and a long conversation",
  metrics: [{ name: "step", unit: "µs", limit: short }],
  goals: [
    {
      of: long,
      metric: "step",
      against: { name: short },
      atMost: 1.5,
      meaning: "what a step costs does not grow with its history",
      isCpuBound: true,
    },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 5 : 9),
  open: async (folder, effort) => [
    await caseOf({ name: short, role: "limit" }, 100, folder, effort),
    await caseOf({ name: long, role: "ours" }, 10_000, folder, effort),
  ],
};
