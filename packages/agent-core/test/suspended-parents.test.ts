import type { LanguageModelV3CallOptions } from "@ai-sdk/provider";
import { verifyRecords } from "@turnkeeper/state-store";
import type { SettledInput, SuspendedTurn, ToolBody, TurnRecord } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { answerApproval, defineTool } from "../src/index.ts";
import type { Agent, AgentOptions, Turn, TurnEvent } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { notingTool } from "./noting-tool.ts";

let bench: Bench;
let ran: string[] = [];
benchOfEachTest((fresh) => {
  bench = fresh;
  ran = [];
});

const delegating = (name: string, mayRunAgain: boolean) =>
  defineTool({
    name,
    description: "Delegates.",
    input: z.object({ task: z.string() }),
    boundMs: 60_000,
    mayRunAgain,
    execute: async ({ task }, context) => ({ ...(await context.delegate?.(task)) }),
  });

const noting = notingTool((what) => void ran.push(what));

const tools = [
  delegating("delegate", true),
  delegating("keep", false),
  defineTool({
    name: "both",
    description: "Delegates twice at once.",
    input: z.object({}),
    mayRunAgain: true,
    execute: async (_input, { delegate: hand }) => {
      if (!hand) throw new Error("There is nobody to hand it to.");
      return (await Promise.all([hand("one"), hand("two")])).map((end) => ({ ...end }));
    },
  }),
  noting("danger", true),
  noting("look", false),
  noting("rewrite", false, "exclusive"),
];

const delegate = (id: string, task: string, name = "delegate") => ({ id, name, input: { task } });
const note = (id: string, name: string) => ({ id, name, input: { what: id } });

const textOf = ({ prompt }: LanguageModelV3CallOptions): string => JSON.stringify(prompt);
const isOver = (request: LanguageModelV3CallOptions): boolean => request.prompt.at(-1)?.role === "tool";

/** A child asks for `danger` once; the parent says `Done.` once it has the results of its first step. */
async function agentWith(
  first: ScriptedStep,
  { options = {}, childs }: { readonly options?: AgentOptions; readonly childs?: ScriptedStep } = {},
): Promise<Agent> {
  const child: ScriptedStep =
    childs ?? ((request) => (isOver(request) ? { text: "It is gone." } : { calls: [note("rm", "danger")] }));
  const step: ScriptedStep = (request) => {
    const one = textOf(request).includes("You are a subagent") ? child : isOver(request) ? { text: "Done." } : first;
    return typeof one === "function" ? one(request) : one;
  };
  return bench.agentOn(scriptedModel(Array.from({ length: 300 }, () => step)), options, tools);
}

async function turnOf(sessionId = "s"): Promise<TurnRecord | undefined> {
  const records = await bench.store.sessions.records(sessionId);
  expect(records && verifyRecords(records)).toEqual([]);
  return records?.turns[0];
}

async function suspendedTurn(sessionId = "s"): Promise<SuspendedTurn> {
  const turn = await turnOf(sessionId);
  if (turn?.state !== "suspended") throw new Error(`The turn of ${sessionId} is ${turn?.state}.`);
  return turn;
}

const childIds = async (parentId = "s"): Promise<readonly string[]> => {
  const { sessions } = await bench.store.sessions.list();
  return sessions.flatMap(({ sessionId, parent }) => (parent?.sessionId === parentId ? [sessionId] : [])).toSorted();
};

async function results(sessionId = "s"): Promise<readonly ToolBody[]> {
  const { entries } = await bench.store.transcript.load(sessionId);
  return entries.flatMap(({ body }) => (body.role === "tool" ? [body] : []));
}

async function notices(sessionId = "s"): Promise<readonly (readonly unknown[])[]> {
  const inputs = (await bench.store.sessions.records(sessionId))?.inputs ?? [];
  return inputs.flatMap((input) =>
    input.child ? [[input.state, (input as SettledInput).end, input.child.outcome]] : [],
  );
}

/** Runs "go" until nothing moves any more. */
async function started(agent: Agent): Promise<{ turn: Turn; events: TurnEvent[] }> {
  const turn = agent.run("s", "go", { inputId: "one", approval: "ask" });
  const events: TurnEvent[] = [];
  void (async () => {
    for await (const event of turn) events.push(event);
  })();
  await bench.host.advance(100);
  return { turn, events };
}

/** An answer from a process that knows of the store alone. */
async function answer(sessionId: string, callId = "rm"): Promise<void> {
  const presence = await openProcessPresence({ host: bench.host });
  const asked = { sessionId, callId, decision: "allow" as const, by: "elsewhere" };
  expect(await answerApproval({ store: bench.store, presence }, asked)).toMatchObject({ kind: "recorded" });
}

const typesOf = (events: readonly TurnEvent[], ...wanted: readonly string[]): readonly string[] =>
  events.flatMap(({ type }) => (wanted.includes(type) ? [type] : []));

describe("a turn whose subagent waits for approval", () => {
  it("rule 7.19: is suspended too, without a lease, and goes on under a new token with the child's end", async () => {
    const agent = await agentWith({ calls: [delegate("d", "remove it")] });
    const { turn, events } = await started(agent);
    const [child = ""] = await childIds();
    expect((await suspendedTurn()).approvals).toMatchObject([{ callId: "d", child: { sessionId: child } }]);
    expect((await suspendedTurn(child)).approvals).toMatchObject([{ callId: "rm" }]);
    for (const sessionId of ["s", child]) expect(await bench.store.leases.read(sessionId)).toBeUndefined();
    const asked = events.flatMap((event) => (event.type === "approval.requested" ? [event] : []));
    expect(asked).toMatchObject([{ callId: "rm", name: "danger", childSessionId: child }]);
    // No liveness bound, no declared wait runs out.
    await bench.host.advance(2 * 3_600_000);
    expect((await suspendedTurn()).approvals).toMatchObject([{ child: { sinceMs: expect.any(Number) } }]);
    await answer(child);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "Done." });
    expect(ran).toEqual(["rm"]);
    expect(await results()).toMatchObject([
      { callId: "d", status: "ok", output: { sessionId: child, outcome: "answered", text: "It is gone." } },
    ]);
    expect(await notices()).toEqual([["settled", "answered", "answered"]]);
    const tokens = events.flatMap((event) => (event.type === "turn.started" ? [event.fencingToken] : []));
    expect(tokens).toHaveLength(2);
    expect(typesOf(events, "tool.started", "tool.finished", "child.started", "child.finished")).toEqual([
      "tool.started",
      "child.started",
      "child.finished",
      "tool.finished",
    ]);
    expect(typesOf(events, "approval.requested")).toHaveLength(1);
  });

  it("rule 7.19 control: whose call may not run again keeps its lease, and waits for as long as it may", async () => {
    const agent = await agentWith({ calls: [delegate("d", "remove it", "keep")] });
    const { turn, events } = await started(agent);
    const [child = ""] = await childIds();
    expect((await suspendedTurn(child)).approvals).toHaveLength(1);
    expect((await turnOf())?.state).toBe("running");
    expect(await bench.store.leases.read("s")).toBeDefined();
    expect(events.filter(({ type }) => type === "turn.waiting")).toMatchObject([
      { awaits: ["d"], keepsSession: true, elapsedMs: 0 },
    ]);
    await answer(child);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "Done." });
  });

  it("says what it waits for once nothing else moves, where a call of it may not be given up", async () => {
    const calls = [note("l", "look"), delegate("d", "one"), delegate("k", "two", "keep")];
    const agent = await agentWith({ calls });
    const { turn, events } = await started(agent);
    expect((await turnOf())?.state).toBe("running");
    const waits = (): readonly unknown[] =>
      events.flatMap((event) => (event.type === "turn.waiting" ? [[event.awaits, event.keepsSession]] : []));
    expect(waits().at(-1)).toEqual([["d", "k"], true]);
    const [one = "", two = ""] = await childIds();
    await answer(two);
    await bench.host.advance(3000);
    // Nothing keeps it any more.
    expect((await suspendedTurn()).approvals).toMatchObject([{ callId: "d" }]);
    expect(waits().at(-1)).toEqual([["d"], undefined]);
    await answer(one);
    expect(await bench.finished(turn)).toMatchObject({ text: "Done." });
    expect(ran).toEqual(["l", "rm", "rm"]);
  });

  it.each([
    ["in their order", [0, 1]],
    ["the second first", [1, 0]],
  ])("rule 7.19: is suspended over one call with two children, that are answered %s", async (_how, order) => {
    const agent = await agentWith({ calls: [{ id: "d", name: "both", input: {} }] });
    const { turn, events } = await started(agent);
    const ids = await childIds();
    expect(ids).toHaveLength(2);
    expect((await suspendedTurn()).approvals).toMatchObject([{ callId: "d", child: { sessionId: ids[0] } }]);
    expect(await bench.store.leases.read("s")).toBeUndefined();
    await answer(ids[order[0] ?? 0] ?? "");
    await bench.host.advance(5000);
    expect((await suspendedTurn()).approvals).toMatchObject([{ child: { sessionId: ids[order[1] ?? 0] } }]);
    await answer(ids[order[1] ?? 0] ?? "");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "Done." });
    expect(ran).toEqual(["rm", "rm"]);
    expect(await childIds()).toEqual(ids);
    expect(await results()).toMatchObject([
      { callId: "d", status: "ok", output: [{ sessionId: ids[0] }, { sessionId: ids[1] }] },
    ]);
    expect(await notices()).toEqual([
      ["settled", "answered", "answered"],
      ["settled", "answered", "answered"],
    ]);
    expect(typesOf(events, "child.started", "child.finished", "tool.started", "approval.requested")).toEqual([
      "tool.started",
      "child.started",
      "child.started",
      "approval.requested",
      "approval.requested",
      "child.finished",
      "child.finished",
    ]);
  });

  it("rule 7.19: takes both children of such a call along by a hard stop", async () => {
    const agent = await agentWith({ calls: [{ id: "d", name: "both", input: {} }] });
    const { turn } = await started(agent);
    const [one = "", two = ""] = await childIds();
    await answer(one);
    await bench.host.advance(5000);
    turn.stop({ hard: true });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(await turnOf(two)).toMatchObject({ state: "ended", reason: "parent" });
  });

  it("rule 7.19: goes on elsewhere where its process is gone, once the child has ended there", async () => {
    const step = { calls: [delegate("d", "remove it")] };
    const first = await agentWith(step);
    const { turn } = await started(first);
    const [child = ""] = await childIds();
    await first.close();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "queued", reason: "shutdown" });
    const second = await agentWith(step);
    expect(await second.answer(child, "rm", { decision: "allow" })).toMatchObject({ isResumed: true });
    await bench.host.advance(5000);
    expect(await turnOf()).toMatchObject({ state: "ended", outcome: "answered" });
    expect(ran).toEqual(["rm"]);
    expect(await results()).toMatchObject([{ callId: "d", status: "ok", output: { text: "It is gone." } }]);
    expect(await notices()).toEqual([["settled", "answered", "answered"]]);
  });

  it("rule 7.19: goes on before the next message to its session, which takes an answered child along", async () => {
    const step = { calls: [delegate("d", "remove it")] };
    const first = await agentWith(step);
    await started(first);
    const [child = ""] = await childIds();
    await first.close();
    await answer(child);
    const second = await agentWith(step);
    const next = second.run("s", "and now?", { approval: "ask" });
    await bench.host.advance(20_000);
    expect((await bench.store.sessions.records("s"))?.turns).toMatchObject([
      { state: "ended", outcome: "answered" },
      { state: "suspended" },
    ]);
    next.stop({ hard: true });
    await bench.finished(next);
  });

  it("TURN-1: whose caller comes back to it is asked what its child asks", async () => {
    const step = { calls: [delegate("d", "remove it")] };
    const first = await agentWith(step);
    await started(first);
    const [child = ""] = await childIds();
    await first.close();
    const second = await agentWith(step);
    const { turn, events } = await started(second);
    await bench.host.advance(2000);
    expect(events.filter(({ type }) => type === "approval.requested")).toMatchObject([
      { callId: "rm", name: "danger", input: { what: "rm" }, childSessionId: child },
    ]);
    await second.answer(child, "rm", { decision: "allow" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "Done." });
  });

  it("is asked again what the child asks later, and only that", async () => {
    let asked = 0;
    const childs: ScriptedStep = () =>
      asked < 2 ? { calls: [note(`rm-${++asked}`, "danger")] } : { text: "Both are gone." };
    const agent = await agentWith({ calls: [delegate("d", "remove both")] }, { childs });
    const { turn, events } = await started(agent);
    const [child = ""] = await childIds();
    await answer(child, "rm-1");
    await bench.host.advance(5000);
    expect((await suspendedTurn()).approvals).toHaveLength(1);
    const questions = events.flatMap((event) => (event.type === "approval.requested" ? [event.callId] : []));
    expect(questions).toEqual(["rm-1", "rm-2"]);
    await answer(child, "rm-2");
    expect(await bench.finished(turn)).toMatchObject({ text: "Done." });
  });

  it("waits beside its own questions, for several children, and runs what is done once only", async () => {
    const calls = [note("l", "look"), delegate("d", "one"), note("own", "danger"), delegate("e", "two")];
    const agent = await agentWith({ calls });
    const { turn } = await started(agent);
    expect(ran).toEqual(["l"]);
    const ids = await childIds();
    expect(ids).toHaveLength(2);
    const open = (await suspendedTurn()).approvals.map(({ callId, child }) => [callId, child?.sessionId]);
    expect(Object.fromEntries(open)).toEqual({ d: ids[0], own: undefined, e: ids[1] });
    await answer(ids[1] ?? "");
    await bench.host.advance(3000);
    await answer("s", "own");
    await bench.host.advance(3000);
    expect((await suspendedTurn()).approvals).toHaveLength(3);
    await answer(ids[0] ?? "");
    expect(await bench.finished(turn)).toMatchObject({ text: "Done." });
    expect(ran.toSorted()).toEqual(["l", "own", "rm", "rm"]);
    expect((await results()).map(({ callId, status }) => [callId, status])).toEqual([
      ["l", "ok"],
      ["d", "ok"],
      ["own", "ok"],
      ["e", "ok"],
    ]);
    expect(await notices()).toEqual([
      ["settled", "answered", "answered"],
      ["settled", "answered", "answered"],
    ]);
  });

  it("keeps back an exclusive call behind it, and does not let one that waits take the place of others", async () => {
    const calls = [delegate("d", "one"), note("l", "look"), note("w", "rewrite"), note("m", "look")];
    const agent = await agentWith({ calls }, { options: { toolConcurrency: 1 } });
    const { turn } = await started(agent);
    expect(ran).toEqual(["l"]);
    const [child = ""] = await childIds();
    expect((await suspendedTurn()).approvals.map(({ callId }) => callId)).toEqual(["d"]);
    await answer(child);
    expect(await bench.finished(turn)).toMatchObject({ text: "Done." });
    expect(ran).toEqual(["l", "rm", "w", "m"]);
  });

  it("is suspended over a grandchild's question through the child between", async () => {
    const childs: ScriptedStep = (request) => {
      if (isOver(request)) return { text: "It is gone." };
      return textOf(request).includes("pass it on")
        ? { calls: [delegate("g", "remove it")] }
        : { calls: [note("rm", "danger")] };
    };
    const options = { delegation: { maxDepth: 2 } };
    const agent = await agentWith({ calls: [delegate("d", "pass it on")] }, { childs, options });
    const { turn, events } = await started(agent);
    const [child = ""] = await childIds();
    const [grandchild = ""] = await childIds(child);
    for (const sessionId of ["s", child, grandchild])
      expect((await suspendedTurn(sessionId)).approvals).toHaveLength(1);
    expect(events.filter(({ type }) => type === "approval.requested")).toMatchObject([
      { callId: "rm", childSessionId: grandchild },
    ]);
    await answer(grandchild);
    expect(await bench.finished(turn)).toMatchObject({ text: "Done." });
    expect(ran).toEqual(["rm"]);
  });

  it("rule 7.20: that is stopped hard takes its children along, theirs too, and is told of each once", async () => {
    const childs: ScriptedStep = (request) =>
      textOf(request).includes("pass it on")
        ? { calls: [delegate("g", "remove it")] }
        : { calls: [note("rm", "danger")] };
    const options = { delegation: { maxDepth: 2 } };
    const agent = await agentWith({ calls: [delegate("d", "pass it on")] }, { childs, options });
    const { turn } = await started(agent);
    const [child = ""] = await childIds();
    const [grandchild = ""] = await childIds(child);
    expect(await agent.stop("s", { hard: true })).toMatchObject({ kind: "stopped" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    for (const sessionId of [child, grandchild])
      expect(await turnOf(sessionId)).toMatchObject({ state: "ended", outcome: "interrupted", reason: "parent" });
    const [result] = await results();
    expect(result).toMatchObject({ callId: "d", status: "interrupted" });
    expect(result?.output).toContain(child);
    expect(await notices()).toEqual([["pending", undefined, "interrupted"]]);
    expect(await notices(child)).toEqual([["pending", undefined, "interrupted"]]);
    expect(ran).toEqual([]);
  });

  it("rule 7.20: that is stopped softly leaves its child, whose end is told to the next turn", async () => {
    const agent = await agentWith({ calls: [delegate("d", "remove it")] });
    const { turn } = await started(agent);
    const [child = ""] = await childIds();
    turn.stop();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted" });
    expect((await suspendedTurn(child)).approvals).toHaveLength(1);
    await answer(child);
    await bench.host.advance(3000);
    expect(await turnOf(child)).toMatchObject({ state: "ended", outcome: "answered" });
    expect(ran).toEqual(["rm"]);
    expect(await notices()).toEqual([["pending", undefined, "answered"]]);
  });

  it("rule 7.20: goes on where its child was stopped or deleted, with that as the call's result", async () => {
    const agent = await agentWith({ calls: [delegate("d", "one"), delegate("e", "two")] });
    const { turn } = await started(agent);
    const [one = "", two = ""] = await childIds();
    await agent.stop(one);
    await bench.host.advance(3000);
    expect((await suspendedTurn()).approvals).toHaveLength(2);
    await agent.stop(two);
    await bench.store.sessions.delete(two);
    expect(await bench.finished(turn)).toMatchObject({ text: "Done." });
    expect(await results()).toMatchObject([
      { callId: "d", status: "ok", output: { sessionId: one, outcome: "interrupted", reason: "user-stop" } },
      { callId: "e", status: "ok", output: { sessionId: two, outcome: "interrupted" } },
    ]);
    expect(await notices()).toEqual([
      ["settled", "answered", "interrupted"],
      ["settled", "answered", "interrupted"],
    ]);
  });

  it("refuses others meanwhile, and says whom it waits for", async () => {
    const agent = await agentWith({ calls: [delegate("d", "remove it")] });
    const { turn } = await started(agent);
    const [child = ""] = await childIds();
    const refused = agent.run("s", "hello", { onBusy: "reject" });
    expect((await bench.finished(refused)).detail).toContain(`the subagent in session ${child}`);
    const presence = await openProcessPresence({ host: bench.host });
    const asked = { sessionId: "s", callId: "d", decision: "deny" as const, by: "somebody" };
    expect(await answerApproval({ store: bench.store, presence }, asked)).toEqual({ kind: "nothing-asked" });
    turn.stop({ hard: true });
    await bench.finished(turn);
  });
});
