import type { LanguageModelV3CallOptions, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { createAgent, defineTool } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import type { Benchmark, Case, Effort, Skipped } from "../benchmark.ts";
import { missingPeers, peer } from "../peers.ts";
import { scriptedLanguageModel, scriptedModel } from "../scripted-model.ts";
import type { CallsOf } from "../scripted-model.ts";
import { cpuOf } from "../stopwatch.ts";

const limit = "the model and the tool by hand";
const ours = "agent.run, a store in memory";
const onDisk = "agent.run, its store on the disk";
const theirs = "ai, streamText";

const callCount = 40;
/** One call in each of so many steps, and all of them in one step. */
const shapes = { "a call, one a step": 1, "a call, all in one step": callCount } as const;
type Shape = keyof typeof shapes;
const shapeNames = Object.keys(shapes) as readonly Shape[];

const turnCount = ({ isQuick }: Effort): number => (isQuick ? 3 : 10);

/** Each call with an input of its own: the same one again and again would be held up, and rightly. */
const callsOf =
  (shape: Shape): CallsOf =>
  ({ prompt }) => {
    const begun = prompt.findLastIndex(({ role }) => role === "user");
    const hasCalled = prompt.slice(begun).reduce((count, { role }) => count + (role === "tool" ? 1 : 0), 0);
    const stepCount = callCount / shapes[shape];
    if (hasCalled >= stepCount) return [];
    return Array.from({ length: shapes[shape] }, (_, index) => ({ name: "look", input: { step: hasCalled, index } }));
  };

const look = async (_input: object): Promise<string> => "a line of text";
const description = "Looks.";
const jsonSchema = { type: "object" } as const;

async function caseOf(
  { name, role, close }: Pick<Case, "name" | "role" | "close">,
  effort: Effort,
  turn: (shape: Shape) => Promise<number>,
): Promise<Case> {
  const measure = async (): Promise<Record<string, readonly number[]>> => {
    const values: Record<string, readonly number[]> = {};
    for (const shape of shapeNames) {
      const turns = async (): Promise<void> => {
        for (let index = 0; index < turnCount(effort); index++) {
          const count = await turn(shape);
          if (count !== callCount) throw new Error(`${name} made ${count} calls.`);
        }
      };
      values[shape] = [(await cpuOf(turns)) / turnCount(effort) / callCount];
    }
    return values;
  };
  for (let index = 0; index < 3; index++) await measure();
  return { name, role, measure, close };
}

/** What a loop cannot do without: read the answer, run what it asks for, ask again with the results. */
async function byHand(shape: Shape): Promise<number> {
  const model = scriptedLanguageModel(callsOf(shape));
  const prompt: LanguageModelV3CallOptions["prompt"] = [{ role: "user", content: [{ type: "text", text: "Go on." }] }];
  let count = 0;
  for (;;) {
    const { stream } = await model.doStream({ prompt });
    const calls: Extract<LanguageModelV3StreamPart, { type: "tool-call" }>[] = [];
    for await (const part of stream) if (part.type === "tool-call") calls.push(part);
    if (calls.length === 0) return count;
    const inputs = calls.map((call) => ({ ...call, input: JSON.parse(call.input) as object }));
    prompt.push({ role: "assistant", content: inputs });
    const results = await Promise.all(
      inputs.map(async ({ toolCallId, toolName, input }) => {
        const output = { type: "text", value: await look(input) } as const;
        return { type: "tool-result", toolCallId, toolName, output } as const;
      }),
    );
    count += results.length;
    prompt.push({ role: "tool", content: results });
  }
}

async function agentCase(name: string, effort: Effort, store: StateStore): Promise<Case> {
  let count = 0;
  const tool = defineTool({
    name: "look",
    description,
    input: { "~standard": { version: 1, vendor: "bench", validate: (value) => ({ value: value as object }) } },
    jsonSchema,
    execute: async (input: object) => {
      count++;
      return look(input);
    },
  });
  const agents = await Promise.all(
    shapeNames.map(
      async (shape) =>
        [shape, await createAgent({ store, model: scriptedModel(callsOf(shape)), tools: [tool] })] as const,
    ),
  );
  const byShape = new Map(agents);
  let sessionCount = 0;
  const turn = async (shape: Shape): Promise<number> => {
    count = 0;
    const finished = await byShape.get(shape)?.run(`s-${sessionCount++}`, "Go on.").result;
    if (finished?.outcome !== "answered") throw new Error(`The turn was ${finished?.outcome}: ${finished?.detail}`);
    return count;
  };
  const close = async (): Promise<void> => {
    for (const [, agent] of agents) await agent.close();
    await store.close();
  };
  return caseOf({ name, role: "ours", close }, effort, turn);
}

async function streamTextCase(effort: Effort): Promise<Case | Skipped> {
  const missing = missingPeers(theirs, "ai");
  if (missing) return missing;
  const { streamText, jsonSchema: schemaOf, stepCountIs } = peer("ai");
  const turn = async (shape: Shape): Promise<number> => {
    let count = 0;
    const execute = async (input: object): Promise<string> => {
      count++;
      return look(input);
    };
    const { textStream } = streamText({
      model: scriptedLanguageModel(callsOf(shape)),
      prompt: "Go on.",
      tools: { look: { description, inputSchema: schemaOf(jsonSchema), execute } },
      stopWhen: stepCountIs(callCount + 1),
    });
    for await (const _text of textStream);
    return count;
  };
  return caseOf({ name: theirs, role: "peer", close: async () => {} }, effort, turn);
}

export const toolCall: Benchmark = {
  name: "tool-call",
  title: "40 calls of a tool that does nothing, with a model that answers at once: one a step, and all in one step",
  metrics: shapeNames.map((name) => ({ name, unit: "µs CPU", limit })),
  goals: [
    ...shapeNames.map((metric) => ({ of: ours, metric, against: { name: theirs }, atMost: 1, isCpuBound: true })),
    {
      of: ours,
      metric: "a call, all in one step",
      against: { metric: "a call, one a step" },
      atMost: 0.6,
      meaning: "calls of one step share its request",
      isCpuBound: true,
    },
  ],
  roundCount: ({ isQuick }) => (isQuick ? 3 : 9),
  open: async (folder, effort) => [
    await caseOf({ name: limit, role: "limit", close: async () => {} }, effort, byHand),
    await agentCase(ours, effort, createMemoryStore({ host: systemHost })),
    await agentCase(onDisk, effort, await openSqliteStore(folder.fresh("calls.db"), { host: systemHost })),
    await streamTextCase(effort),
  ],
};
