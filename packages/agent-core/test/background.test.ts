import type { EntryBody } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../src/index.ts";
import type { Agent, AgentDeps, Review, ReviewedConversation } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedModel, ScriptedStep } from "../src/testing/index.ts";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

async function agentWith(
  steps: readonly ScriptedStep[],
  deps: Partial<AgentDeps>,
): Promise<{ agent: Agent; model: ScriptedModel }> {
  const model = scriptedModel(steps);
  const { host, store, scheduler } = bench;
  const presence = await openProcessPresence({ host });
  const agent = await createAgent({ store, model, host, scheduler, presence, ...deps });
  return { agent, model };
}

/** Moves time until `work` is done. */
async function done<Value>(work: Promise<Value>): Promise<Value> {
  let isDone = false;
  void work.then(() => (isDone = true)).catch(() => (isDone = true));
  for (let step = 0; !isDone && step < 1000; step++) await bench.host.advance(10);
  return work;
}

const textsOf = (bodies: readonly EntryBody[]): readonly string[] =>
  bodies.map((body) => (body.role === "assistant" ? JSON.stringify(body.parts) : "text" in body ? body.text : ""));

describe("a background review", () => {
  it("has a copy of the conversation, once the session is free, and stores nothing", async () => {
    const seen: ReviewedConversation[] = [];
    const heldAtStart: unknown[] = [];
    const review: Review = async (conversation) => {
      heldAtStart.push(await bench.store.leases.read(conversation.sessionId));
      seen.push(conversation);
      (conversation.bodies as EntryBody[]).length = 0;
    };
    const { agent, model } = await agentWith([{ text: "Hello." }, { text: "Hello again." }], { review });
    const turn = agent.run("s", "hi");
    await bench.finished(turn);
    const before = await bench.store.sessions.records("s");
    await done(agent.idle());
    expect(await bench.store.sessions.records("s")).toEqual(before);
    expect(heldAtStart).toEqual([undefined]);
    await bench.finished(agent.run("s", "hi again"));
    await done(agent.idle());
    expect(seen.map(({ bodies }) => bodies.length)).toEqual([0, 0]);
    // What it did to its copy no request has.
    expect(JSON.stringify(model.requests.at(-1)?.prompt)).toContain("Hello.");
    await done(agent.close());
  });

  it("is of the conversation as it was, whatever its next turn says meanwhile", async () => {
    let look = (): void => {};
    const seen: (readonly string[])[] = [];
    const review: Review = async ({ bodies }) => {
      await new Promise<void>((resolve) => (look = resolve));
      seen.push(textsOf(bodies));
    };
    const { agent } = await agentWith([{ text: "First." }, { text: "Second." }], { review });
    await bench.finished(agent.run("s", "one"));
    await bench.host.advance(1);
    const lookAtFirst = look;
    await bench.finished(agent.run("s", "two"));
    lookAtFirst();
    await bench.host.advance(1);
    expect(seen).toEqual([["one", expect.stringContaining("First.")]]);
    look();
    await done(agent.close());
  });

  it("is cancelled when the session's next turn begins, and when the agent closes, which waits for no deaf one", async () => {
    const signals: AbortSignal[] = [];
    const review: Review = (_conversation, signal) => {
      signals.push(signal);
      return new Promise<never>(() => {});
    };
    const { agent } = await agentWith([{ text: "One." }, { text: "Two." }], { review });
    await bench.finished(agent.run("s", "one"));
    await bench.host.advance(1);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    await bench.finished(agent.run("s", "two"));
    await bench.host.advance(1);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    await done(agent.close());
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  it("is of answered turns alone, and of no child", async () => {
    const seen: string[] = [];
    const review: Review = async ({ sessionId }) => void seen.push(sessionId);
    const delegate = defineTool({
      name: "delegate",
      description: "Delegates.",
      input: z.object({}),
      execute: async (_input, context) => ({ ...(await context.delegate?.("look")) }),
    });
    const steps: ScriptedStep[] = [
      { calls: [{ name: "delegate", input: {} }] },
      { text: "Found it." },
      { text: "Done." },
      { fail: new Error("broken") },
    ];
    const { agent } = await agentWith(steps, { review, tools: [delegate] });
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ text: "Done." });
    await done(agent.idle());
    expect(await bench.finished(agent.run("t", "go"))).toMatchObject({ outcome: "failed" });
    await done(agent.idle());
    expect(seen).toEqual(["s"]);
    await done(agent.close());
  });
});

describe("a session's title", () => {
  const titleOf = async (sessionId = "s"): Promise<string | undefined> =>
    (await bench.store.sessions.read(sessionId))?.title;

  it("is what a model of its own makes of the first turn, and is asked for once", async () => {
    const titleModel = scriptedModel([{ text: '"Greeting a friend."\n' }], "scripted/cheap");
    const { agent } = await agentWith([{ text: "Hello." }, { text: "Again." }], { titleModel });
    await bench.finished(agent.run("s", "hi there"));
    await done(agent.idle());
    expect(await titleOf()).toBe("Greeting a friend");
    await bench.finished(agent.run("s", "hi again"));
    await done(agent.idle());
    expect(titleModel.requests).toHaveLength(1);
    expect(JSON.stringify(titleModel.requests[0]?.prompt)).toContain("hi there");
    await done(agent.close());
  });

  it("is never taken from a session that a person named while the model thought", async () => {
    const named: ScriptedStep = async () => {
      await bench.store.sessions.setTitle("s", "mine");
      return { text: "Its own idea" };
    };
    const { agent } = await agentWith([{ text: "Hello." }], { titleModel: scriptedModel([named], "scripted/cheap") });
    await bench.finished(agent.run("s", "hi"));
    await done(agent.idle());
    expect(await titleOf()).toBe("mine");
    await done(agent.close());
  });

  it("stays the first message where the model fails or says nothing, and the next turn tries again", async () => {
    const titleModel = scriptedModel(
      [{ fail: new Error("broken") }, { text: " \n" }, { text: "At last" }],
      "scripted/cheap",
    );
    const steps = [{ text: "1" }, { text: "2" }, { text: "3" }];
    const { agent } = await agentWith(steps, { titleModel });
    for (const title of ["hi", "hi", "At last"]) {
      await bench.finished(agent.run("s", "hi"));
      await done(agent.idle());
      expect(await titleOf()).toBe(title);
    }
    await done(agent.close());
  });
});
