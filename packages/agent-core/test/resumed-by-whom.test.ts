import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { virtualProcesses } from "@turnkeeper/turn-lease/testing";
import type { VirtualProcess, VirtualProcesses } from "@turnkeeper/turn-lease/testing";
import { describe, expect, it } from "vitest";
import { answerApproval, createAgent } from "../src/index.ts";
import type { Agent, AnyTool } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { notingTool } from "./noting-tool.ts";

let bench: Bench;
let ran: string[] = [];
let processes: VirtualProcesses;
benchOfEachTest((fresh) => {
  bench = fresh;
  ran = [];
  processes = virtualProcesses({ host: bench.host });
});

const danger = notingTool((what) => void ran.push(what))("danger", true);

interface Life {
  readonly agent: Agent;
  readonly presence: VirtualProcess;
  end(): Promise<void>;
}

async function live(instanceId: string, steps: readonly ScriptedStep[], tools: readonly AnyTool[]): Promise<Life> {
  const { host, store } = bench;
  const presence = processes.start({ instanceId });
  const scheduler = createPeriodicScheduler({ host });
  const agent = await createAgent({ store, model: scriptedModel(steps), tools, host, scheduler, presence });
  const end = async (): Promise<void> => {
    await agent.close();
    await scheduler.close();
  };
  return { agent, presence, end };
}

/** A turn asks about a call, and its process is gone before anybody answers. */
async function asked(): Promise<void> {
  const call = { id: "a", name: "danger", input: { what: "a" } };
  const asking = await live("asks", [{ calls: [call] }], [danger]);
  asking.agent.run("s", "go", { inputId: "one", approval: "ask" });
  await bench.host.advance(50);
  await asking.end();
  asking.presence.kill();
}

/** From a process that knows of the store alone. */
async function allow(): Promise<void> {
  const presence = processes.start({ instanceId: "answers" });
  const request = { sessionId: "s", callId: "a", decision: "allow" as const, by: "elsewhere" };
  expect(await answerApproval({ store: bench.store, presence }, request)).toMatchObject({ kind: "recorded" });
}

const says = (text: string): readonly ScriptedStep[] => [{ text }, { text }];
const messages = {
  "follows it": ["go", "one"],
  "has another message": ["and?", "two"],
} as const;

describe.each(["follows it", "has another message"] as const)("an answered turn, and a process that %s", (what) => {
  const [text, inputId] = messages[what];

  it("rule 7.19: is left by it without its tools, and gone on with where they are", async () => {
    await asked();
    const without = await live("without", says("I have no such tool."), []);
    const call = without.agent.run("s", text, { inputId, approval: "ask" });
    await bench.host.advance(3000);
    await allow();
    await bench.host.advance(20_000);
    expect([(await bench.store.turns.running("s"))[0]?.turn.state, ran]).toEqual(["suspended", []]);
    const having = await live("having", says("Done."), [danger]);
    expect(await having.agent.runWaiting()).toBe(1);
    const expected = what === "follows it" ? "Done." : "I have no such tool.";
    expect(await bench.finished(call)).toMatchObject({ outcome: "answered", text: expected });
    expect(ran).toEqual(["a"]);
    expect(await bench.store.inbox.read("s", "one")).toMatchObject({ end: "answered" });
    await Promise.all([without.end(), having.end()]);
  });

  it("rule 7.19 control: is gone on with by it where it has its tools", async () => {
    await asked();
    const having = await live("having", says("Done."), [danger]);
    const call = having.agent.run("s", text, { inputId, approval: "ask" });
    await bench.host.advance(3000);
    await allow();
    expect(await bench.finished(call)).toMatchObject({ outcome: "answered" });
    expect(ran).toEqual(["a"]);
    await having.end();
  });
});
