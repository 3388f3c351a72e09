import { createAgent, defineTool } from "@turnkeeper/agent-core";
import type { Agent } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import type { Benchmark, Case, Effort } from "../benchmark.ts";
import { scriptedModel } from "../scripted-model.ts";
import { cpuOf } from "../stopwatch.ts";

const limit = "turns of their own, as many at once";
const few = "30 children";
const many = "1,000 children";
const manyCount = 1_000;
const once = { each: manyCount, times: 1 };
const atOnce = 30;

/** The system's host, which counts the timers that are pending. */
function countingHost(): { readonly host: Host; readonly peak: () => number; readonly pending: () => number } {
  const open = new Set<object>();
  let peak = 0;
  const { timers } = systemHost;
  const after: Host["timers"]["after"] = (ms, fn, options) => {
    const timer = {};
    open.add(timer);
    peak = Math.max(peak, open.size);
    const cancel = timers.after(
      ms,
      () => {
        open.delete(timer);
        fn();
      },
      options,
    );
    return () => {
      open.delete(timer);
      cancel();
    };
  };
  const host = {
    ...systemHost,
    timers: { ...timers, after, afterPoll: timers.afterPoll.bind(timers), soon: timers.soon.bind(timers) },
  };
  return { host, peak: () => peak, pending: () => open.size };
}

async function heapBytes(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    await new Promise((resolve) => void setImmediate(resolve));
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}

interface Ground {
  readonly agent: Agent;
  readonly store: StateStore;
  readonly timers: Omit<ReturnType<typeof countingHost>, "host">;
}

/** An agent whose model delegates so often in one step where it is asked to; every other turn is one answer. */
async function openGround(childCount: number): Promise<Ground> {
  const { host, ...timers } = countingHost();
  const store = createMemoryStore({ host });
  const delegate = defineTool({
    name: "delegate",
    description: "Delegates.",
    input: { "~standard": { version: 1, vendor: "bench", validate: (value) => ({ value: value as object }) } },
    jsonSchema: { type: "object" },
    execute: async (_input: object, context) => {
      const child = await context.delegate?.("Answer.");
      if (child?.outcome !== "answered") throw new Error(`A child was ${child?.outcome}.`);
      // What is measured is what the agent keeps; the store forgets them.
      await store.sessions.delete(child.sessionId);
      return "done";
    },
  });
  const model = scriptedModel(({ prompt }) => {
    const last = prompt.at(-1);
    const isParent =
      last?.role === "user" && last.content.some((part) => part.type === "text" && part.text === "Fan out.");
    return isParent ? Array.from({ length: childCount }, (_, index) => ({ name: "delegate", input: { index } })) : [];
  });
  const options = { toolConcurrency: atOnce, delegation: { maxChildren: manyCount } };
  return { agent: await createAgent({ store, model, tools: [delegate], host }, options), store, timers };
}

async function caseOf(
  { name, role }: Pick<Case, "name" | "role">,
  { each, times }: { readonly each: number; readonly times: number },
  fanOut: (ground: Ground, name: string) => Promise<void>,
): Promise<Case> {
  const ground = await openGround(each);
  const childCount = each * times;
  let round = 0;
  const measure = async (): Promise<Record<string, readonly number[]>> => {
    const before = await heapBytes();
    const cpuUs = await cpuOf(async () => {
      for (let time = 0; time < times; time++) await fanOut(ground, `parent-${round++}`);
    });
    await ground.agent.idle();
    const after = await heapBytes();
    return {
      CPU: [cpuUs / childCount],
      "heap left": [(after - before) / childCount / 1_024],
      "timers at once": [ground.timers.peak()],
      "timers left": [ground.timers.pending()],
    };
  };
  await measure();
  const close = async (): Promise<void> => {
    await ground.agent.close();
    await ground.store.close();
  };
  return { name, role, measure, close };
}

async function delegated({ agent, store }: Ground, name: string): Promise<void> {
  const { outcome, detail } = await agent.run(name, "Fan out.").result;
  if (outcome !== "answered") throw new Error(`The parent was ${outcome}: ${detail}`);
  await store.sessions.delete(name);
}

/** The same turns without a parent. */
async function alone({ agent, store }: Ground, name: string): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < manyCount; index = next++) {
      const sessionId = `${name}-${index}`;
      const { outcome } = await agent.run(sessionId, "Answer.").result;
      if (outcome !== "answered") throw new Error(`A turn was ${outcome}.`);
      await store.sessions.delete(sessionId);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

export const fanOut: Benchmark = {
  name: "fan-out",
  title: "a turn that delegates to 30 children, and to 1,000, 30 at once: what each costs, and what is left of it",
  metrics: [
    { name: "CPU", unit: "µs a child", limit },
    { name: "heap left", unit: "KB a child", limit },
    { name: "timers at once", unit: "", limit },
    { name: "timers left", unit: "", limit },
  ],
  goals: [
    {
      of: many,
      metric: "CPU",
      against: { name: few },
      atMost: 1.2,
      meaning: "a child costs the same, however many there are",
      isCpuBound: true,
    },
    { of: many, metric: "CPU", against: { name: limit }, atMost: 2, isCpuBound: true },
    {
      of: many,
      metric: "heap left",
      atMost: 1,
      meaning: "KB a child: its call's own entry and result",
      isCpuBound: true,
    },
    { of: many, metric: "timers left", atMost: 2, isCpuBound: true },
  ],
  roundCount: ({ isQuick }: Effort) => (isQuick ? 2 : 7),
  open: async () => [
    await caseOf({ name: limit, role: "limit" }, once, alone),
    await caseOf({ name: few, role: "ours" }, { each: 30, times: 33 }, delegated),
    await caseOf({ name: many, role: "ours" }, once, delegated),
  ],
};
