import type { LanguageModelV3CallOptions } from "@ai-sdk/provider";
import type { Grant, SettledInput, ToolBody } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { Agent, AgentOptions, AnyTool, Turn } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedModel, ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

/** Answers with what its child came to. */
const delegate = defineTool({
  name: "delegate",
  description: "Delegates.",
  input: z.object({ task: z.string(), deadlineMs: z.number().optional() }),
  boundMs: 60_000,
  execute: async ({ task, deadlineMs }, context) => ({
    ...(await context.delegate?.(task, deadlineMs === undefined ? {} : { deadlineMs })),
  }),
});

const delegates = (...tasks: readonly string[]): ScriptedStep => ({
  calls: tasks.map((task) => ({ name: "delegate", input: { task } })),
});

const isChilds = ({ prompt }: LanguageModelV3CallOptions): boolean =>
  JSON.stringify(prompt[0]).includes("You are a subagent");
const textOf = ({ prompt }: LanguageModelV3CallOptions): string => JSON.stringify(prompt);

/** An agent whose own steps come in order; what its children say is one step, again and again. */
async function agentWith(
  own: readonly ScriptedStep[],
  childs: ScriptedStep,
  options: AgentOptions = {},
  tools: readonly AnyTool[] = [],
): Promise<{ agent: Agent; model: ScriptedModel }> {
  const left = [...own];
  const step: ScriptedStep = (request) => (isChilds(request) ? childs : (left.shift() ?? { text: "(no more steps)" }));
  const model = scriptedModel(Array.from({ length: 300 }, () => step));
  return { agent: await bench.agentOn(model, options, [delegate, ...tools]), model };
}

async function results(sessionId = "s"): Promise<readonly ToolBody[]> {
  const { entries } = await bench.store.transcript.load(sessionId);
  return entries.flatMap(({ body }) => (body.role === "tool" ? [body] : []));
}

async function childIds(): Promise<readonly string[]> {
  const { sessions } = await bench.store.sessions.list();
  return sessions.flatMap(({ sessionId, parent }) => (parent ? [sessionId] : []));
}

/** The notices of the parent, whatever became of them. */
async function notices(sessionId = "s"): Promise<readonly SettledInput[]> {
  const records = await bench.store.sessions.records(sessionId);
  return (records?.inputs ?? []).filter(({ child }) => child !== undefined) as SettledInput[];
}

async function childEnds(): Promise<readonly unknown[]> {
  const ids = await childIds();
  const records = await Promise.all(ids.map((id) => bench.store.sessions.records(id)));
  return records
    .flatMap((one) => one?.turns ?? [])
    .map((turn) => turn.state === "ended" && [turn.outcome, turn.reason]);
}

const grantOf = async (sessionId: string): Promise<Grant> => {
  const lease = await bench.store.leases.read(sessionId);
  if (!lease) throw new Error(`Session ${sessionId} is free.`);
  return { sessionId, holderId: lease.holder.holderId, fencingToken: lease.fencingToken };
};

/** A parent whose child waits for a model that says nothing more. */
async function waitingForSilent(options?: AgentOptions): Promise<{ agent: Agent; model: ScriptedModel; turn: Turn }> {
  const own = [delegates("look"), { text: "Next turn." }];
  const { agent, model } = await agentWith(own, { silentAfter: "I am looking" }, options);
  const turn = agent.run("s", "go");
  await bench.host.advance(20);
  expect(await childIds()).toHaveLength(1);
  return { agent, model, turn };
}

describe("a call that delegates", () => {
  it("has its child's end as its result, and the notice of it is settled with that: nothing is told twice", async () => {
    const { agent, model } = await agentWith([delegates("look for it"), { text: "Done." }], { text: "Found it." });
    const turn = agent.run("s", "go");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "Done." });
    const [child = ""] = await childIds();
    expect(await results()).toMatchObject([
      { status: "ok", output: { sessionId: child, outcome: "answered", text: "Found it." } },
    ]);
    expect(await notices()).toMatchObject([
      { state: "settled", end: "answered", child: { sessionId: child, outcome: "answered" } },
    ]);
    expect(textOf(model.requests.at(-1) ?? model.requests[0]!)).not.toContain("The subagent in session");
    const [call] = (await bench.store.transcript.load("s")).entries.flatMap(({ body }) =>
      body.role === "tool" ? [body.callId] : [],
    );
    const record = await bench.store.sessions.read(child);
    expect(record?.parent).toMatchObject({ sessionId: "s", callId: call });
    const events = await bench.eventsOf(turn);
    expect(events.filter(({ type }) => type.startsWith("child."))).toMatchObject([
      { type: "child.started", childSessionId: child, callId: call },
      { type: "child.finished", childSessionId: child, callId: call, outcome: "answered" },
    ]);
  });

  it("runs beside others, each with one child, one result and one notice of its own", async () => {
    const tasks = Array.from({ length: 20 }, (_, index) => `part ${index}`);
    const childs: ScriptedStep = (request) => ({ text: `did ${/part \d+/.exec(textOf(request))?.[0]}` });
    const { agent } = await agentWith([delegates(...tasks), { text: "Done." }], childs);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ text: "Done." });
    expect((await results()).map(({ output }) => (output as { text: string }).text)).toEqual(
      tasks.map((task) => `did ${task}`),
    );
    expect((await notices()).map(({ state }) => state)).toEqual(tasks.map(() => "settled"));
  });

  it("is an answer too where the child fails or runs out of time, with what it had said", async () => {
    const own: ScriptedStep[] = [
      { calls: [{ name: "delegate", input: { task: "look", deadlineMs: 30_000 } }] },
      { text: "Done." },
    ];
    const { agent } = await agentWith(own, { silentAfter: "I am looking" });
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered" });
    expect(await results()).toMatchObject([
      { status: "ok", output: { outcome: "interrupted", reason: "deadline", text: "I am looking" } },
    ]);
    expect(await notices()).toMatchObject([{ end: "answered", child: { outcome: "interrupted", reason: "deadline" } }]);
  });

  it("is refused a subagent past the limit of its turn, and below the depth that is allowed", async () => {
    const own = [delegates("one", "two", "three"), { text: "Done." }];
    const { agent } = await agentWith(own, { text: "Did it." }, { delegation: { maxChildren: 2 } });
    await bench.finished(agent.run("s", "go"));
    expect((await results()).map(({ status }) => status).toSorted()).toEqual(["error", "ok", "ok"]);
    expect(await childIds()).toHaveLength(2);

    let asked = 0;
    const deeper: ScriptedStep = () => (asked++ === 0 ? delegates("deeper") : { text: "Did it myself." });
    const flat = await agentWith([delegates("one"), { text: "Done." }], deeper);
    await bench.finished(flat.agent.run("t", "go"));
    expect(await results("t")).toMatchObject([{ output: { text: "Did it myself." } }]);
    expect(await childIds()).toHaveLength(3);
  });
});

it("counts the subagents of a turn before it was suspended, whoever goes on with it", async () => {
  const danger = defineTool({
    name: "danger",
    description: "Is asked for.",
    input: z.object({}),
    needsApproval: true,
    execute: async () => "done",
  });
  const asks: ScriptedStep = { calls: [{ id: "asks", name: "danger", input: {} }] };
  const options = { delegation: { maxChildren: 2 } };
  const first = await agentWith([delegates("one"), asks], { text: "Did it." }, options, [danger]);
  first.agent.run("s", "go", { inputId: "in", approval: "ask" });
  await bench.host.advance(2000);
  expect((await bench.store.turns.running("s"))[0]?.turn.state).toBe("suspended");
  await first.agent.close();
  const second = await agentWith([delegates("two", "three"), { text: "done" }], { text: "Did it." }, options, [danger]);
  const turn = second.agent.run("s", "go", { inputId: "in", approval: "ask" });
  await bench.host.advance(500);
  await second.agent.answer("s", "asks", { decision: "allow" });
  expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "done" });
  expect(await childIds()).toHaveLength(2);
  expect((await results()).map(({ status }) => status)).toEqual(["ok", "ok", "ok", "error"]);
});

describe("a stop of the parent", () => {
  it("leaves the child alone where it is soft, and the next turn is told of the child's end, once", async () => {
    let finish = (): void => {};
    const own = [delegates("look"), { text: "Next turn." }, { text: "And another." }];
    const slow: ScriptedStep = async () => {
      await new Promise<void>((resolve) => (finish = resolve));
      return { text: "Found it late." };
    };
    const { agent, model } = await agentWith(own, slow);
    const turn = agent.run("s", "go");
    await bench.host.advance(20);
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(await results()).toMatchObject([{ status: "interrupted", output: expect.stringContaining("goes on") }]);
    expect(await notices()).toEqual([]);
    finish();
    await bench.host.advance(100);
    expect(await notices()).toMatchObject([{ state: "pending", child: { outcome: "answered" } }]);
    await bench.finished(agent.run("s", "what came of it?"));
    expect(textOf(model.requests.at(-1)!)).toContain("Found it late.");
    expect(await notices()).toMatchObject([{ state: "settled", end: "answered" }]);
    await bench.finished(agent.run("s", "and now?"));
    expect(textOf(model.requests.at(-1)!).split("Found it late.")).toHaveLength(2);
  });

  it("goes down to the child where it is hard, and to the child's child", async () => {
    const deeper: ScriptedStep = (request) =>
      textOf(request).includes("deepest") ? { silentAfter: "deep" } : delegates("deepest");
    const { agent } = await agentWith([delegates("go deep")], deeper, { delegation: { maxDepth: 2 } });
    const turn = agent.run("s", "go");
    await bench.host.advance(50);
    expect(await childIds()).toHaveLength(2);
    turn.stop({ hard: true });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted" });
    await bench.host.advance(20_000);
    expect(await childEnds()).toEqual([
      ["interrupted", "parent"],
      ["interrupted", "parent"],
    ]);
  });

  it("reaches a child that was left by a soft stop when it hardens", async () => {
    const { turn } = await waitingForSilent();
    turn.stop();
    turn.stop({ hard: true });
    await bench.finished(turn);
    await bench.host.advance(20_000);
    expect(await childEnds()).toEqual([["interrupted", "parent"]]);
  });

  it("INT-2: starts no child any more once it was observed", async () => {
    const late = defineTool({
      name: "late",
      description: "Delegates when it is stopped.",
      input: z.object({}),
      execute: async (_input, context) => {
        await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve(), { once: true }));
        return { ...(await context.delegate?.("too late")) };
      },
    });
    const { agent } = await agentWith([{ calls: [{ name: "late", input: {} }] }], { text: "?" }, {}, [late]);
    const turn = agent.run("s", "go");
    await bench.host.advance(20);
    turn.stop();
    await bench.finished(turn);
    expect(await childIds()).toEqual([]);
  });
});

describe("rule 7.20: the end of a child", () => {
  it("is told to a parent that lost its session by a message to its next turn, its call having an unknown outcome", async () => {
    const { agent, model, turn } = await waitingForSilent();
    await bench.store.turns.settleForeign(await grantOf("s"));
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted" });
    await bench.host.advance(80_000);
    expect(await results()).toMatchObject([{ status: "unknown" }]);
    expect(await notices()).toMatchObject([{ state: "pending", child: { outcome: "interrupted", reason: "parent" } }]);
    await bench.finished(agent.run("s", "what now?"));
    expect(textOf(model.requests.at(-1)!).split("The subagent in session")).toHaveLength(2);
    expect(await notices()).toMatchObject([{ state: "settled" }]);
  });

  it("is told where the child was settled by others, and the call that waits has it as its result", async () => {
    const { turn } = await waitingForSilent();
    const [child = ""] = await childIds();
    await bench.store.turns.settleForeign(await grantOf(child));
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    expect(await results()).toMatchObject([{ status: "ok", output: { outcome: "interrupted" } }]);
    expect(await notices()).toMatchObject([{ state: "settled", child: { reason: "crashed" } }]);
  });
});

describe("a child whose session is removed", () => {
  const danger = defineTool({
    name: "danger",
    description: "Asks.",
    input: z.object({}),
    needsApproval: true,
    execute: async () => "ran",
  });

  it("while it waits for approval is told as a failed one to the call that waits for it", async () => {
    const childs: ScriptedStep = { calls: [{ name: "danger", input: {} }] };
    const { agent } = await agentWith([delegates("look"), { text: "Then so." }], childs, {}, [danger]);
    const turn = agent.run("s", "go", { approval: "ask" });
    await bench.host.advance(50);
    const [child = ""] = await childIds();
    expect(await bench.store.sessions.delete(child)).toMatchObject({ kind: "deleted" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "Then so." });
    expect(await results()).toMatchObject([{ status: "ok", output: { outcome: "failed" } }]);
    expect(await notices()).toMatchObject([{ state: "settled" }]);
  });

  it("while it runs is kept: whoever would remove it is told who has it", async () => {
    const { turn } = await waitingForSilent();
    const [child = ""] = await childIds();
    expect(await bench.store.sessions.delete(child)).toMatchObject({ kind: "held" });
    turn.stop({ hard: true });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted" });
  });
});

describe("a child that works", () => {
  it("LIVE-2: keeps its parent alive as long as it moves, however long that is", async () => {
    let beats = 0;
    const work = defineTool({
      name: "work",
      description: "Works.",
      input: z.object({}),
      boundMs: 7_200_000,
      execute: async (_input, context) => {
        for (; beats < 60; beats++) {
          await new Promise<void>((resolve) => void bench.host.timers.after(60_000, resolve));
          context.progress();
        }
        return "worked for an hour";
      },
    });
    let asked = 0;
    const childs: ScriptedStep = () => (asked++ === 0 ? { calls: [{ name: "work", input: {} }] } : { text: "Done." });
    const { agent } = await agentWith([delegates("work"), { text: "All done." }], childs, {}, [work]);
    const turn = agent.run("s", "go");
    await bench.host.advance(3_600_000);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "All done." });
    expect(beats).toBe(60);
  });

  it("LIVE-1: leaves its parent to the watchdog once it stands still in one tool for too long", async () => {
    const stuck = defineTool({
      name: "stuck",
      description: "Hangs.",
      input: z.object({}),
      boundMs: 36_000_000,
      execute: (_input, context) =>
        new Promise((_resolve, reject) =>
          context.signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true }),
        ),
    });
    const { agent } = await agentWith([delegates("work")], { calls: [{ name: "stuck", input: {} }] }, {}, [stuck]);
    const turn = agent.run("s", "go");
    await bench.host.advance(1_200_000);
    expect((await bench.store.turns.running("s")).length).toBe(1);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "stalled" });
    await bench.host.advance(20_000);
    expect(await childEnds()).toEqual([["interrupted", "parent"]]);
  });
});
