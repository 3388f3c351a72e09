import { verifyRecords } from "@turnkeeper/state-store";
import type { ToolBody } from "@turnkeeper/state-store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { AnyTool, ToolDefinition } from "../src/index.ts";
import { createBench } from "./bench.ts";
import type { Bench } from "./bench.ts";

let bench: Bench;
let runningCount = 0;
let mostAtOnce = 0;
let log: string[] = [];
beforeEach(() => {
  bench = createBench();
  runningCount = 0;
  mostAtOnce = 0;
  log = [];
});
afterEach(async () => {
  for (const { sessionId } of (await bench.store.sessions.list()).sessions) {
    const records = await bench.store.sessions.records(sessionId);
    expect(records && verifyRecords(records)).toEqual([]);
  }
  await bench.close();
  expect(bench.host.pendingTimerCount()).toBe(0);
});

const after = (ms: number): Promise<void> => new Promise((resolve) => void bench.host.timers.after(ms, resolve));

/** Takes as long as it is told, and keeps count of how many run. */
function taking(name: string, rest: Pick<ToolDefinition, "concurrency" | "needsApproval"> = {}): AnyTool {
  return defineTool({
    name,
    description: "Takes its time.",
    input: z.object({ ms: z.number(), what: z.string() }),
    ...rest,
    execute: async ({ ms, what }) => {
      runningCount++;
      mostAtOnce = Math.max(mostAtOnce, runningCount);
      log.push(`start ${what}`);
      await after(ms);
      log.push(`end ${what}`);
      runningCount--;
      return what;
    },
  } as ToolDefinition<{ ms: number; what: string }>);
}

const call = (name: string, what: string, ms: number): { name: string; input: { what: string; ms: number } } => ({
  name,
  input: { what, ms },
});

async function results(): Promise<ToolBody[]> {
  const { entries } = await bench.store.transcript.load("s");
  return entries.flatMap(({ body }) => (body.role === "tool" ? [body] : []));
}

describe("the calls of one step", () => {
  it("run at once, and their results stand in the order the model gave the calls in", async () => {
    const calls = [call("take", "a", 500), call("take", "b", 10), call("take", "c", 200)];
    const { agent, model } = await bench.agent([{ calls }, { text: "done" }], {}, [taking("take")]);
    const turn = agent.run("s", "go");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    expect(log).toEqual(["start a", "start b", "start c", "end b", "end c", "end a"]);
    expect((await results()).map(({ output }) => output)).toEqual(["a", "b", "c"]);
    const told = model.requests[1]?.prompt.at(-1)?.content;
    expect(Array.isArray(told) && told.map((part) => (part as { toolCallId?: string }).toolCallId)).toEqual([
      "call-1",
      "call-2",
      "call-3",
    ]);
    const finishedIds = (await bench.eventsOf(turn)).flatMap((event) =>
      event.type === "tool.finished" ? [event.callId] : [],
    );
    expect(finishedIds).toEqual(["call-1", "call-2", "call-3"]);
  });

  it("are never more at once than the agent is told", async () => {
    const calls = Array.from({ length: 20 }, (_, index) => call("take", String(index), 10 + (index % 3)));
    const { agent } = await bench.agent([{ calls }, { text: "done" }], { toolConcurrency: 3 }, [taking("take")]);
    await bench.finished(agent.run("s", "go"));
    expect(mostAtOnce).toBe(3);
    expect(await results()).toHaveLength(20);
  });

  it("wait for an exclusive one, and it for them", async () => {
    const calls = [call("take", "a", 50), call("alone", "b", 10), call("take", "c", 50), call("take", "d", 10)];
    const tools = [taking("take"), taking("alone", { concurrency: "exclusive" })];
    const { agent } = await bench.agent([{ calls }, { text: "done" }], {}, tools);
    await bench.finished(agent.run("s", "go"));
    expect(log).toEqual(["start a", "end a", "start b", "end b", "start c", "start d", "end d", "end c"]);
  });

  it("INT-2: that have not started when a stop is observed never do, and each has its one result", async () => {
    const calls = Array.from({ length: 6 }, (_, index) => call("take", String(index), 100));
    const { agent } = await bench.agent([{ calls }, { text: "never" }], { toolConcurrency: 2 }, [taking("take")]);
    const turn = agent.run("s", "go");
    await bench.host.advance(20);
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted" });
    expect(log).toEqual(["start 0", "start 1", "end 0", "end 1"]);
    expect((await results()).map(({ status, output }) => [status, JSON.stringify(output).slice(1, 8)])).toEqual([
      ["interrupted", '0"'],
      ["interrupted", '1"'],
      ...Array.from({ length: 4 }, () => ["interrupted", "Not run"]),
    ]);
  });

  it("that run when the store refuses the token are stopped hard, and none of them starts after that", async () => {
    const stoppedAtMs: number[] = [];
    const steal = defineTool({
      name: "steal",
      description: "Loses the session to another.",
      input: z.object({}),
      execute: async () => {
        const lease = await bench.store.leases.read("s");
        if (!lease) throw new Error("The turn holds no lease.");
        const { holder, fencingToken } = lease;
        await bench.store.turns.settleForeign({ sessionId: "s", holderId: holder.holderId, fencingToken });
        return "stolen";
      },
    });
    const stubborn = defineTool({
      name: "stubborn",
      description: "Runs until it is stopped hard.",
      input: z.object({}),
      execute: (_input, { hardSignal }) =>
        new Promise((resolve) => {
          hardSignal.addEventListener("abort", () => {
            stoppedAtMs.push(bench.host.clock.monotonicMs());
            resolve("stopped");
          });
        }),
    });
    const names = ["steal", "stubborn", "take"];
    const calls = names.map((name) => (name === "take" ? call(name, "late", 1) : { name, input: {} }));
    const tools = [steal, stubborn, taking("take")];
    const { agent } = await bench.agent([{ calls }, { text: "never" }], { toolConcurrency: 2 }, tools);
    const turn = agent.run("s", "go");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "lease-lost" });
    // At once: the next renewal, which would find it out too, is a minute away.
    expect(stoppedAtMs).toEqual([expect.closeTo(0, -3)]);
    expect(log).toEqual([]);
  });
});
