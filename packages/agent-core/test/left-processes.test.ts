import { openProcessPresence } from "@turnkeeper/turn-lease";
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../src/index.ts";
import type { Agent } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedModel, ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

const daemon = defineTool({
  name: "daemon",
  description: "Leaves something running.",
  input: z.object({}),
  execute: async (_input, { processMarker }) => Object.keys(processMarker).join(" "),
});

interface Machine {
  readonly agent: Agent;
  readonly model: ScriptedModel;
  /** The turns whose processes were to be ended, in order. */
  readonly asked: string[];
  /** Whether that works. */
  readonly power: { isWorking: boolean };
}

const agents: Agent[] = [];
afterEach(async () => {
  const closing = agents.splice(0).map((agent) => agent.close());
  await bench.host.advance(2000);
  await Promise.all(closing);
});

async function machine(...steps: readonly ScriptedStep[]): Promise<Machine> {
  const { host, store, scheduler } = bench;
  const [asked, power, model] = [[] as string[], { isWorking: true }, scriptedModel(steps)];
  const endProcesses = async (marker: Readonly<Record<string, string>>): Promise<void> => {
    asked.push(...Object.values(marker));
    if (!power.isWorking) throw new Error("no more files");
  };
  const presence = await openProcessPresence({ host });
  const agent = await createAgent({ store, host, scheduler, presence, endProcesses, model, tools: [daemon] });
  agents.push(agent);
  return { agent, model, asked, power };
}

async function turnThatDied(): Promise<void> {
  const { identity } = await openProcessPresence({ host: bench.host });
  const runner = { ...identity, runnerId: "gone" };
  await bench.store.inbox.offer({ sessionId: "s", inputId: "dead", text: "dead", onBusy: "wait", runner });
  const begin = { turnId: "dead-turn", runnerId: "gone" };
  const holder = { ...identity, holderId: "gone" };
  const granted = await bench.store.leases.acquire({ sessionId: "s", holder, ttlMs: 300_000, begin });
  if (granted.kind !== "granted") throw new Error(`The session is ${granted.kind}.`);
  await bench.store.turns.settleForeign({ sessionId: "s", holderId: "gone", fencingToken: granted.fencingToken });
}

it("rule 7.14: a turn that cannot end what was left before it starts nothing, and those after it are told again", async () => {
  await turnThatDied();
  const { agent, model, asked, power } = await machine({ text: "free of it" }, { text: "at last" });
  power.isWorking = false;
  for (let time = 0; time < 2; time++)
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({
      outcome: "failed",
      reason: "PROCESSES_LEFT",
      detail: expect.stringContaining("turn dead-turn left running on this host could not be ended"),
    });
  expect(model.requests).toEqual([]);
  power.isWorking = true;
  asked.length = 0;
  expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered" });
  expect(asked[0]).toBe("dead-turn");
  asked.length = 0;
  expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered" });
  expect(asked).toEqual([]);
});

it("rule 7.14: a turn whose own processes cannot be ended ends as it would, and those after it are told of it", async () => {
  const calls: ScriptedStep = { calls: [{ name: "daemon", input: {} }] };
  const { agent, asked, power } = await machine(calls, { text: "left one" }, { text: "next" });
  power.isWorking = false;
  const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
  const left = await bench.finished(agent.run("s", "go"));
  expect(left).toMatchObject({ outcome: "answered", text: "left one" });
  expect((await warned).message).toContain("no more files");
  power.isWorking = true;
  asked.length = 0;
  expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "next" });
  expect(asked).toEqual([left.turnId]);
});

it("rule 7.14: a turn that ends while it still ends what was left before it leaves it to those after it", async () => {
  await turnThatDied();
  const { host, store, scheduler } = bench;
  const presence = await openProcessPresence({ host });
  const model = scriptedModel([]);
  // Ends nothing, however long one waits.
  const endProcesses = (): Promise<void> => new Promise(() => {});
  const agent = await createAgent({ store, host, scheduler, presence, endProcesses, model });
  agents.push(agent);
  const turn = agent.run("s", "go");
  await host.advance(10);
  turn.stop({ hard: true });
  expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
  const next = await machine({ text: "next" });
  expect(await bench.finished(next.agent.run("s", "go"))).toMatchObject({ outcome: "answered" });
  expect(next.asked).toEqual(["dead-turn", (await turn.result).turnId]);
});
