/**
 * A process of its own, with the collector at hand: delegates to a thousand children, each with much to say, and tells what
 * of them it can still reach. Its store forgets them, so that only what the agent keeps is counted.
 */
import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { systemHost } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import { z } from "zod";
import { createAgent, defineTool } from "../../src/index.ts";

const [turns = "20", children = "50", mode] = process.argv.slice(2);
const [turnCount, childrenPerTurn] = [Number(turns), Number(children)];
/** The control: what an agent that kept its children would have. */
const kept: object[] = [];
const outputLength = 50_000;

const store = createMemoryStore({ host: systemHost });
const ofChildren: WeakRef<object>[] = [];

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

function says(...parts: readonly LanguageModelV3StreamPart[]): { stream: ReadableStream<LanguageModelV3StreamPart> } {
  const reason = parts.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop";
  const finish: LanguageModelV3StreamPart = { type: "finish", usage, finishReason: { unified: reason, raw: reason } };
  return {
    stream: new ReadableStream({
      start(controller) {
        for (const part of [...parts, finish]) controller.enqueue(part);
        controller.close();
      },
    }),
  };
}

const text = (delta: string): LanguageModelV3StreamPart[] => [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta },
  { type: "text-end", id: "t" },
];
const call = (toolName: string, index: number): LanguageModelV3StreamPart => ({
  type: "tool-call",
  toolCallId: `call-${index}`,
  toolName,
  input: "{}",
});

function answer({ prompt, abortSignal }: LanguageModelV3CallOptions): ReturnType<typeof says> {
  const hasResult = prompt.at(-1)?.role === "tool";
  const [system] = prompt;
  const isChild = system?.role === "system" && system.content.includes("You are a subagent");
  if (isChild) {
    for (const one of [...prompt, abortSignal]) if (one) ofChildren.push(new WeakRef(one));
    return hasResult ? says(...text("Done.")) : says(call("read", 0));
  }
  if (hasResult) return says(...text("All done."));
  return says(...Array.from({ length: childrenPerTurn }, (_, index) => call("delegate", index)));
}

const languageModel: LanguageModelV3 = {
  specificationVersion: "v3",
  provider: "fan-out",
  modelId: "fan-out",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("It streams only.")),
  doStream: async (request) => answer(request),
};

let childCount = 0;
const tools = [
  defineTool({
    name: "read",
    description: "Answers much.",
    input: z.object({}),
    execute: async (_input, context) => {
      ofChildren.push(new WeakRef(context));
      if (mode === "keeping") kept.push(context);
      return `${context.sessionId} ${"x".repeat(outputLength)}`;
    },
  }),
  defineTool({
    name: "delegate",
    description: "Delegates.",
    input: z.object({}),
    execute: async (_input, context) => {
      const child = await context.delegate?.("read much");
      if (child?.outcome !== "answered") throw new Error(`The child ended as ${child?.outcome}.`);
      childCount++;
      await store.sessions.delete(child.sessionId);
      return "done";
    },
  }),
];

const model = { id: "fan-out/fan-out", languageModel, close: async () => {}, [Symbol.asyncDispose]: async () => {} };
const agent = await createAgent({ store, model, tools }, { toolConcurrency: 30 });

async function heapBytes(): Promise<number> {
  for (let round = 0; round < 5; round++) {
    await new Promise((resolve) => void setImmediate(resolve));
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}

/** Rests on a turn that has ended, as whatever a turn leaves behind does. */
async function fanOut(turn: number): Promise<void> {
  const finished = await agent.run(`s-${turn}`, "go").result;
  if (finished.outcome !== "answered") throw new Error(`The parent ended as ${JSON.stringify(finished)}.`);
}

await fanOut(-1);
childCount = 0;
const before = await heapBytes();
for (let turn = 0; turn < turnCount; turn++) await fanOut(turn);
await agent.idle();
const after = await heapBytes();
const aliveCount = ofChildren.filter((reference) => reference.deref() !== undefined).length;
const timerCount = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
process.stdout.write(
  `${JSON.stringify({ childCount, referenceCount: ofChildren.length, aliveCount, grownBytes: after - before, timerCount })}\n`,
);
await agent.close();
await store.close();
kept.length = 0;
