import { verifyRecords } from "@turnkeeper/state-store";
import type { ToolBody } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { answerApproval, defineTool } from "../src/index.ts";
import type { Agent, ApprovalOutcome, Turn, TurnEvent } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { notingTool } from "./noting-tool.ts";

let bench: Bench;
let ran: string[] = [];
benchOfEachTest((fresh) => {
  bench = fresh;
  ran = [];
});

const noting = notingTool((what) => void ran.push(what));

const tools = [
  noting("danger", true),
  noting("look", false),
  noting("change", true, "exclusive"),
  noting("rewrite", false, "exclusive"),
];
const call = (id: string, name = "danger") => ({ id, name, input: { what: id } });
const asking = (...calls: ReturnType<typeof call>[]) => ({ calls });

async function results(sessionId = "s"): Promise<readonly ToolBody[]> {
  const records = await bench.store.sessions.records(sessionId);
  if (!records) throw new Error(`There is no session ${sessionId}.`);
  expect(verifyRecords(records)).toEqual([]);
  return records.entries.flatMap(({ body }) => (body.role === "tool" ? [body] : []));
}

/** Runs "go" until its turn is suspended. */
async function suspended(agent: Agent, inputId = "one"): Promise<{ turn: Turn; events: TurnEvent[] }> {
  const turn = agent.run("s", "go", { inputId, approval: "ask" });
  const events: TurnEvent[] = [];
  void (async () => {
    for await (const event of turn) events.push(event);
  })();
  await bench.host.advance(50);
  expect((await bench.store.turns.running("s"))[0]?.turn.state).toBe("suspended");
  return { turn, events };
}

/** An answer from another process, which knows of the store alone. */
async function answerFromElsewhere(callId: string, decision: "allow" | "deny"): Promise<ApprovalOutcome> {
  const presence = await openProcessPresence({ host: bench.host });
  return answerApproval({ store: bench.store, presence }, { sessionId: "s", callId, decision, by: "elsewhere" });
}

const typesOf = (events: readonly TurnEvent[]): readonly string[] => events.map(({ type }) => type);

describe("a turn that asks for approval", () => {
  it("rule 7.19: is suspended without a lease, and goes on under a new token once it is answered", async () => {
    const { agent, model } = await bench.agent([asking(call("a")), { text: "done" }], {}, tools);
    const { turn, events } = await suspended(agent);
    expect(await bench.store.leases.read("s")).toBeUndefined();
    expect(events.at(-1)).toMatchObject({
      type: "approval.requested",
      callId: "a",
      name: "danger",
      input: { what: "a" },
    });
    expect(ran).toEqual([]);
    const before = events.find((event) => event.type === "turn.started");
    expect(await agent.answer("s", "a", { decision: "allow", by: "me" })).toMatchObject({
      kind: "recorded",
      isResumed: true,
    });
    const finished = await bench.finished(turn);
    expect(finished).toMatchObject({ outcome: "answered", text: "done", turnId: before?.turnId });
    expect(finished.usage).toMatchObject({ inputTokens: 20 });
    const tokens = events.flatMap((event) => (event.type === "turn.started" ? [event.fencingToken] : []));
    expect(tokens).toHaveLength(2);
    expect(tokens[1]).toBeGreaterThan(tokens[0] ?? 0);
    expect(ran).toEqual(["a"]);
    expect(model.requests).toHaveLength(2);
    expect(await results()).toMatchObject([{ callId: "a", status: "ok" }]);
    expect(await bench.store.turns.read("s", finished.turnId ?? "")).toMatchObject({
      approvals: [{ callId: "a", answer: { decision: "allow", by: "me" } }],
    });
  });

  it("says how far it had answered, where it goes on and fails", async () => {
    const { agent } = await bench.agent([{ text: "First I look.", ...asking(call("a")) }], {}, tools);
    const { turn } = await suspended(agent);
    await agent.answer("s", "a", { decision: "allow" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "failed", text: "First I look." });
  });

  it("tells the model of a call that was denied, and of two answers takes the first", async () => {
    const { agent } = await bench.agent([asking(call("a"), call("b")), { text: "well" }], {}, tools);
    const { turn } = await suspended(agent);
    expect(await answerFromElsewhere("a", "deny")).toMatchObject({ kind: "recorded", openCallIds: ["b"] });
    expect(await answerFromElsewhere("a", "allow")).toMatchObject({ kind: "already-answered" });
    await bench.host.advance(5000);
    expect(ran).toEqual([]);
    expect(await answerFromElsewhere("b", "allow")).toMatchObject({ kind: "recorded", isResumed: true });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    expect(ran).toEqual(["b"]);
    expect(await results()).toMatchObject([
      { callId: "a", status: "denied" },
      { callId: "b", status: "ok" },
    ]);
    expect(await answerFromElsewhere("c", "allow")).toEqual({ kind: "nothing-asked" });
  });

  it("runs meanwhile what does not ask, but nothing that must not overtake what does", async () => {
    const calls = [call("a"), call("b", "look"), call("c", "change"), call("d", "look"), call("e")];
    const { agent } = await bench.agent([asking(...calls), { text: "done" }], {}, tools);
    const { turn, events } = await suspended(agent);
    expect(ran).toEqual(["b"]);
    const asked = events.flatMap((event) => (event.type === "approval.requested" ? [event.callId] : []));
    expect(asked).toEqual(["a", "c", "e"]);
    for (const callId of asked) await agent.answer("s", callId, { decision: "allow" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    expect(ran).toEqual(["b", "a", "c", "d", "e"]);
    expect((await results()).map(({ callId }) => callId)).toEqual(["b", "a", "c", "d", "e"]);
  });

  it("keeps back an exclusive call that asks nothing, and what stands behind it, while one before them asks", async () => {
    const calls = [call("a"), call("b", "rewrite"), call("c", "look")];
    const { agent } = await bench.agent([asking(...calls), { text: "done" }], {}, tools);
    const { turn, events } = await suspended(agent);
    expect(ran).toEqual([]);
    const asked = events.flatMap((event) => (event.type === "approval.requested" ? [event.callId] : []));
    expect(asked).toEqual(["a"]);
    await agent.answer("s", "a", { decision: "allow" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    expect(ran).toEqual(["a", "b", "c"]);
  });

  it("TURN-1: that another goes on with ends for its first caller with that turn, not after the caller's next message", async () => {
    const slow = defineTool({
      name: "slow",
      description: "Takes ten seconds.",
      input: z.object({ what: z.string() }),
      execute: () => new Promise((resolve) => void bench.host.timers.after(10_000, () => resolve("slept"))),
    });
    const first = await bench.agent([asking(call("a")), asking(call("b", "slow")), { text: "second" }], {}, [
      ...tools,
      slow,
    ]);
    const { turn } = await suspended(first.agent);
    const next = first.agent.run("s", "next", { inputId: "two" });
    await bench.host.advance(50);
    const { agent } = await bench.agent([asking(call("c", "slow")), { text: "done" }], {}, [...tools, slow]);
    // Nobody is woken for this answer: whoever looks first goes on.
    await bench.store.turns.answer({ sessionId: "s", callId: "a", decision: "allow", by: "elsewhere" });
    const again = agent.run("s", "go", { inputId: "one", approval: "ask" });
    expect(await bench.finished(again)).toMatchObject({ outcome: "answered", text: "done" });
    let isNextOver = false;
    void next.result.then(() => (isNextOver = true));
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "done" });
    expect(isNextOver).toBe(false);
    expect(await bench.finished(next)).toMatchObject({ outcome: "answered" });
  });

  it("rule 7.19: survives its process: another resumes it before its own message, and asks again as the first did", async () => {
    const first = await bench.agent([asking(call("a"))], {}, tools);
    const { turn } = await suspended(first.agent);
    await first.agent.close();
    expect(await turn.result).toMatchObject({ outcome: "queued", reason: "shutdown" });
    const steps = [asking(call("b")), { text: "done" }, { text: "second" }];
    const { agent } = await bench.agent(steps, {}, tools);
    const next = agent.run("s", "next", { inputId: "two" });
    await bench.host.advance(2500);
    expect(await answerFromElsewhere("a", "allow")).toMatchObject({ kind: "recorded" });
    await bench.host.advance(2500);
    expect(ran).toEqual(["a"]);
    expect(await answerFromElsewhere("b", "deny")).toMatchObject({ kind: "recorded", isResumed: true });
    expect(await bench.finished(next)).toMatchObject({ outcome: "answered", text: "second" });
    expect(ran).toEqual(["a"]);
    expect(await bench.store.inbox.read("s", "one")).toMatchObject({ state: "settled", end: "answered" });
    const waiting = (await bench.eventsOf(next)).filter((event) => event.type === "turn.waiting");
    expect(waiting[0]).toMatchObject({ awaits: ["a"] });
    expect(await results()).toMatchObject([
      { callId: "a", status: "ok" },
      { callId: "b", status: "denied" },
    ]);
  });

  it("has each call and each result once, in the store and in every request, however often it was resumed and by whom", async () => {
    const first = await bench.agent([asking(call("a"), call("b", "look")), asking(call("c"))], {}, tools);
    await suspended(first.agent);
    await first.agent.answer("s", "a", { decision: "allow" });
    await bench.host.advance(50);
    await first.agent.close();
    const { agent, model } = await bench.agent([asking(call("d")), { text: "done" }, { text: "next" }], {}, tools);
    await agent.answer("s", "c", { decision: "allow" });
    await bench.host.advance(50);
    await agent.answer("s", "d", { decision: "deny" });
    expect(await bench.finished(agent.run("s", "and?"))).toMatchObject({ outcome: "answered", text: "next" });
    expect((await results()).map(({ callId }) => callId)).toEqual(["b", "a", "c", "d"]);
    expect(ran).toEqual(["b", "a", "c"]);
    expect(model.requests).toHaveLength(3);
    const last = JSON.stringify(model.requests[2]?.prompt);
    for (const type of ["tool-call", "tool-result"]) {
      const ids = [...last.matchAll(new RegExp(`"type":"${type}","toolCallId":"(\\w)"`, "g"))].map(
        ([, id]) => id ?? "",
      );
      expect(ids.toSorted((left, right) => left.localeCompare(right))).toEqual(["a", "b", "c", "d"]);
    }
  });

  it("is stopped like any other once it goes on, by whoever asks", async () => {
    const { agent } = await bench.agent([asking(call("a")), { silentAfter: "so" }], {}, tools);
    const { turn } = await suspended(agent);
    await agent.answer("s", "a", { decision: "allow" });
    await bench.host.advance(50);
    expect(await agent.stop("s", { by: "me" })).toMatchObject({ kind: "requested" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop", by: "me" });
    expect(ran).toEqual(["a"]);
    expect((await results()).map(({ status }) => status)).toEqual(["ok"]);
  });

  it("goes on where it is answered, if nobody lives who asked", async () => {
    const first = await bench.agent([asking(call("a"))], {}, tools);
    await suspended(first.agent);
    await first.agent.close();
    const { agent } = await bench.agent([{ text: "done" }], {}, tools);
    expect(await agent.answer("s", "a", { decision: "allow" })).toMatchObject({ isResumed: true });
    for (let step = 0; step < 20; step++) await bench.host.advance(10);
    expect(await bench.store.inbox.read("s", "one")).toMatchObject({ end: "answered" });
    expect(ran).toEqual(["a"]);
  });

  it("waits for whoever has its tools, where it is answered by an agent that has not", async () => {
    const first = await bench.agent([asking(call("a"))], {}, tools);
    await suspended(first.agent);
    await first.agent.close();
    const toolless = await bench.agent([{ text: "never asked" }]);
    const outcome = await toolless.agent.answer("s", "a", { decision: "allow" });
    expect(outcome).toMatchObject({ kind: "recorded", isResumed: false });
    await bench.host.advance(100);
    expect((await bench.store.turns.running("s"))[0]?.turn.state).toBe("suspended");
    const other = await bench.agent([{ text: "done" }], {}, tools);
    expect(await other.agent.runWaiting()).toBe(1);
    await bench.host.advance(100);
    expect(ran).toEqual(["a"]);
    expect(await results()).toMatchObject([{ callId: "a", status: "ok" }]);
    expect(toolless.model.requests).toEqual([]);
  });

  it("tells a repeat of its message what it asks, and lets it go on with the turn", async () => {
    const first = await bench.agent([asking(call("a"))], {}, tools);
    await suspended(first.agent);
    await first.agent.close();
    const { agent } = await bench.agent([{ text: "done" }], {}, tools);
    const again = agent.run("s", "go", { inputId: "one", approval: "ask" });
    await bench.host.advance(1000);
    await answerFromElsewhere("a", "allow");
    expect(await bench.finished(again)).toMatchObject({ outcome: "answered", text: "done" });
    const types = typesOf(await bench.eventsOf(again));
    expect(types.filter((type) => type === "approval.requested")).toHaveLength(1);
    expect(types).toContain("text.delta");
  });

  it("ends at once by a stop: its calls are told as not run, and the session is free", async () => {
    const { agent } = await bench.agent([asking(call("a"), call("b", "look")), { text: "second" }], {}, tools);
    const { turn } = await suspended(agent);
    turn.stop({ by: "me" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop", by: "me" });
    expect(await results()).toMatchObject([
      { callId: "b", status: "ok" },
      { callId: "a", status: "interrupted", output: expect.stringContaining("Not run") },
    ]);
    expect(await answerFromElsewhere("a", "allow")).toEqual({ kind: "nothing-asked" });
    expect(await bench.finished(agent.run("s", "next"))).toMatchObject({ text: "second" });
    expect(ran).toEqual(["b"]);
  });

  it("is told from elsewhere that it was stopped", async () => {
    const { agent } = await bench.agent([asking(call("a"))], {}, tools);
    const { turn } = await suspended(agent);
    const other = await bench.agent([], {}, tools);
    expect(await other.agent.stop("s", { by: "other" })).toMatchObject({ kind: "stopped" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", by: "other" });
  });

  it("is busy for a message that would not wait, takes a steer when it goes on, and makes way for an interrupting one", async () => {
    const steps = [asking(call("a")), { text: "one" }, asking(call("b")), { text: "two" }];
    const { agent, model } = await bench.agent(steps, {}, tools);
    const { turn } = await suspended(agent);
    expect(await bench.finished(agent.run("s", "no", { onBusy: "reject" }))).toMatchObject({
      outcome: "busy",
      detail: expect.stringContaining("approval of danger"),
    });
    expect(await bench.finished(agent.run("s", "also this", { onBusy: "steer" }))).toMatchObject({ outcome: "queued" });
    await agent.answer("s", "a", { decision: "allow" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    expect(JSON.stringify(model.requests[1]?.prompt)).toContain("also this");

    const second = await suspended(agent, "three");
    const interrupting = agent.run("s", "now", { onBusy: "interrupt" });
    expect(await bench.finished(interrupting)).toMatchObject({ outcome: "answered", text: "two" });
    expect(await bench.finished(second.turn)).toMatchObject({ outcome: "interrupted", reason: "user-message" });
    expect(ran).toEqual(["a"]);
    await results();
  });

  it("rule 7.19: waits longer than any lease, and nobody reaps it", async () => {
    const { agent } = await bench.agent([asking(call("a")), { text: "done" }], { lease: { ttlMs: 1000 } }, tools);
    const { turn } = await suspended(agent);
    for (let hour = 0; hour < 3; hour++) await bench.host.advance(3_600_000);
    await agent.answer("s", "a", { decision: "allow" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "done" });
  });

  it("does not get its iterations back by waiting", async () => {
    const steps = [asking(call("a")), asking(call("b")), { text: "never" }];
    const { agent } = await bench.agent(steps, { maxIterations: 2 }, tools);
    const { turn } = await suspended(agent);
    await agent.answer("s", "a", { decision: "allow" });
    await bench.host.advance(50);
    await agent.answer("s", "b", { decision: "allow" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "failed", reason: "MAX_ITERATIONS" });
    expect(ran).toEqual(["a", "b"]);
  });
});

describe("a policy", () => {
  it("decides before the run does: what it denies nobody allows, and what it allows nobody is asked about", async () => {
    const calls = [call("a"), call("b", "look"), call("c", "change")];
    const verdicts = { danger: "deny", look: "ask", change: "allow" } as const;
    const agent = await bench.agentOn(
      scriptedModel([asking(...calls), { text: "done" }]),
      {},
      tools,
      undefined,
      ({ name }) => verdicts[name as keyof typeof verdicts],
    );
    expect(await bench.finished(agent.run("s", "go", { approval: "allow" }))).toMatchObject({ outcome: "answered" });
    expect(ran).toEqual(["b", "c"]);
    expect((await results()).map(({ status }) => status)).toEqual(["denied", "ok", "ok"]);
  });
});
