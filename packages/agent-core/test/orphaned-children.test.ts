import { describe, expect, it } from "vitest";
import { answerApproval } from "../src/index.ts";
import type { AgentOptions } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { delegate } from "./delegating-tool.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { livesOn } from "./life.ts";
import type { Life, Lives } from "./life.ts";
import { notingTool } from "./noting-tool.ts";

let bench: Bench;
let lives: Lives;
let ran: string[] = [];
benchOfEachTest((fresh) => {
  bench = fresh;
  lives = livesOn(bench);
  ran = [];
});

const tools = [delegate, notingTool((what) => void ran.push(what))("danger", true)];
const options: AgentOptions = { delegation: { maxDepth: 2 } };

/** The parent has it passed on; the child has a grandchild remove something, which asks. */
const step: ScriptedStep = ({ prompt }) => {
  const said = JSON.stringify(prompt);
  if (prompt.at(-1)?.role === "tool") return { text: "Done." };
  if (said.includes("remove it")) return { calls: [{ id: "rm", name: "danger", input: { what: "rm" } }] };
  return { calls: [said.includes("You are a subagent") ? call("g", "remove it") : call("d", "pass it on")] };
};
const call = (id: string, task: string) => ({ id, name: "delegate", input: { task } });
const steps = Array.from({ length: 100 }, () => step);

const childOf = async (parentId: string): Promise<string> => {
  const { sessions } = await bench.store.sessions.list();
  return sessions.find(({ parent }) => parent?.sessionId === parentId)?.sessionId ?? "";
};

interface Family {
  readonly asks: Life;
  readonly child: string;
  readonly grandchild: string;
}

async function family(): Promise<Family> {
  const asks = await lives.start("asks", steps, tools, options);
  void asks.agent.run("s", "go", { inputId: "one", approval: "ask" });
  await bench.host.advance(100);
  const child = await childOf("s");
  const grandchild = await childOf(child);
  for (const sessionId of ["s", child, grandchild])
    expect((await bench.store.turns.running(sessionId))[0]?.turn.state).toBe("suspended");
  return { asks, child, grandchild };
}

/** Somebody stops the parent, and dies in the moment in which that is written. */
async function stopAndDie(hard: boolean): Promise<void> {
  const stop = { hard, reason: "user-stop" as const, by: "a process that dies" };
  expect((await bench.store.turns.requestStop("s", stop)).kind).toBe("stopped");
}

async function allow(sessionId: string): Promise<void> {
  const request = { sessionId, callId: "rm", decision: "allow" as const, by: "elsewhere" };
  const deps = { store: bench.store, presence: lives.bystander() };
  expect(await answerApproval(deps, request)).toMatchObject({ kind: "recorded" });
}

const turnsOf = async (sessionId: string) => (await bench.store.sessions.records(sessionId))?.turns ?? [];

const noticesOf = async (sessionId: string): Promise<readonly unknown[]> => {
  const inputs = (await bench.store.sessions.records(sessionId))?.inputs ?? [];
  return inputs.flatMap(({ child }) => (child ? [[child.sessionId, child.outcome, child.reason]] : []));
};

describe("children whose parent was stopped hard by somebody who died before they were", () => {
  it("rule 7.20: end by that stop in any process on the store, theirs too, and each is told once", async () => {
    const { asks, child, grandchild } = await family();
    asks.kill();
    await stopAndDie(true);
    const other = await lives.start("other", steps, tools, options);
    await bench.host.advance(1000);
    for (const sessionId of [child, grandchild])
      expect(await turnsOf(sessionId)).toMatchObject([{ state: "ended", outcome: "interrupted", reason: "parent" }]);
    expect(await noticesOf("s")).toEqual([[child, "interrupted", "parent"]]);
    expect(await noticesOf(child)).toEqual([[grandchild, "interrupted", "parent"]]);
    await bench.host.advance(65_000);
    expect(await noticesOf("s")).toHaveLength(1);
    expect(ran).toEqual([]);
    for (const life of [asks, other]) await life.end();
  });

  it("rule 7.20: end by it in the process that asked, where nobody else comes", async () => {
    const { asks, child, grandchild } = await family();
    await stopAndDie(true);
    await bench.host.advance(31_000);
    expect(await turnsOf(child)).toMatchObject([{ state: "ended", reason: "parent" }]);
    expect(await turnsOf(grandchild)).toMatchObject([{ state: "ended", reason: "parent" }]);
    expect(await noticesOf("s")).toEqual([[child, "interrupted", "parent"]]);
    await asks.end();
  });

  it("rule 7.20: run nothing that is allowed before somebody has found them", async () => {
    const { asks, child, grandchild } = await family();
    await bench.store.turns.requestStop(child, { hard: true, reason: "parent", by: "a process that dies" });
    await allow(grandchild);
    await bench.host.advance(5000);
    expect(await turnsOf(grandchild)).toMatchObject([{ state: "ended", outcome: "interrupted", reason: "parent" }]);
    expect(await noticesOf(child)).toEqual([[grandchild, "interrupted", "parent"]]);
    expect(ran).toEqual([]);
    await asks.end();
  });

  it("rule 7.20 control: are left where the stop was a soft one, and run what is allowed", async () => {
    const { asks, child, grandchild } = await family();
    await stopAndDie(false);
    await bench.host.advance(65_000);
    for (const sessionId of [child, grandchild])
      expect(await turnsOf(sessionId)).toMatchObject([{ state: "suspended" }]);
    await allow(grandchild);
    await bench.host.advance(5000);
    expect(await turnsOf(child)).toMatchObject([{ state: "ended", outcome: "answered" }]);
    expect(ran).toEqual(["rm"]);
    await asks.end();
  });

  it("rule 7.20: take nobody's later message to their sessions for their task", async () => {
    const { asks, child } = await family();
    expect(await asks.agent.stop("s", { hard: true })).toMatchObject({ kind: "stopped" });
    await bench.host.advance(1000);
    void asks.agent.run(child, "remove it", { approval: "ask" });
    await bench.host.advance(65_000);
    expect(await turnsOf(child)).toMatchObject([{ state: "ended", reason: "parent" }, { state: "suspended" }]);
    await asks.agent.stop(child, { hard: true });
    await asks.end();
  });
});
