import type { LanguageModelV3Prompt } from "@ai-sdk/provider";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { Agent } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

const nobody = {
  runnerId: "gone",
  instanceId: "gone",
  host: "elsewhere",
  bootId: "another boot",
  pid: 1,
};

async function idle(agent: Agent): Promise<void> {
  let isIdle = false;
  void agent.idle().then(() => (isIdle = true));
  while (!isIdle) await bench.host.advance(10);
}

/** An input that waits for whoever comes. */
async function leaveInput(sessionId: string): Promise<void> {
  await bench.store.inbox.offer({ sessionId, inputId: "i", text: sessionId, onBusy: "wait", runner: nobody });
  await bench.store.inbox.abandon(sessionId, nobody.runnerId);
}

async function until(isTrue: () => boolean): Promise<void> {
  for (let step = 0; !isTrue(); step++) {
    if (step > 20_000) throw new Error("It does not come to that.");
    await bench.host.advance(1);
  }
}

const textOf = (prompt: LanguageModelV3Prompt): string => {
  const last = prompt.at(-1);
  return last?.role === "user" ? last.content.map((part) => (part.type === "text" ? part.text : "")).join("") : "";
};

const endOf = async (sessionId: string, inputId: string): Promise<unknown> => {
  const input = await bench.store.inbox.read(sessionId, inputId);
  return input?.state === "settled" ? input.end : input?.state;
};

describe("what waits for nobody", () => {
  it("is run by whoever serves the store: what was left in the queue, oldest first, each once", async () => {
    const { agent } = await bench.agent([{ text: "one" }, { text: "two" }, { text: "three" }]);
    for (const [sessionId, inputId] of [
      ["a", "1"],
      ["b", "2"],
      ["a", "3"],
    ] as const) {
      await bench.store.inbox.offer({ sessionId, inputId, text: inputId, onBusy: "wait", runner: nobody });
      await bench.store.inbox.abandon(sessionId, nobody.runnerId);
    }
    expect(await agent.runWaiting()).toBe(2);
    await idle(agent);
    expect([await endOf("a", "1"), await endOf("b", "2"), await endOf("a", "3")]).toEqual(Array(3).fill("answered"));
    expect(await agent.runWaiting()).toBe(0);
  });

  it("is begun in so many sessions as there is room for, those first that have waited longest", async () => {
    const { agent } = await bench.agent([{ text: "one" }, { text: "two" }]);
    for (const sessionId of ["c", "a", "b"]) {
      await bench.store.inbox.offer({ sessionId, inputId: "i", text: "Hi", onBusy: "wait", runner: nobody });
      await bench.store.inbox.abandon(sessionId, nobody.runnerId);
    }
    expect(await agent.runWaiting({ sessionCount: 2 })).toBe(2);
    await idle(agent);
    expect([await endOf("c", "i"), await endOf("a", "i"), await endOf("b", "i")]).toEqual([
      "answered",
      "answered",
      "pending",
    ]);
    await expect(agent.runWaiting({ sessionCount: 0 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });

  it("is none of what a process that may live waits for, or holds", async () => {
    const { agent } = await bench.agent([{ silentAfter: "…" }]);
    const other = await bench.agent([{ text: "not asked" }]);
    const held = agent.run("held", "Hi");
    await bench.host.advance(20);
    await bench.store.inbox.offer({ sessionId: "held", inputId: "q", text: "Hi", onBusy: "queue", runner: nobody });
    await bench.store.inbox.offer({ sessionId: "theirs", inputId: "i", text: "Hi", onBusy: "wait", runner: nobody });
    expect(await other.agent.runWaiting()).toBe(0);
    held.stop({ hard: true });
    await bench.finished(held);
  });

  it("of a thousand sessions is run a few at a time, the oldest first, each once", async () => {
    const sessions = Array.from({ length: 1000 }, (_none, index) => `s${index}`);
    for (const sessionId of sessions) await leaveInput(sessionId);
    const asked: string[] = [];
    let runningCount = 0;
    let mostCount = 0;
    const { agent } = await bench.agent(
      sessions.map(() => async ({ prompt }) => {
        asked.push(textOf(prompt));
        mostCount = Math.max(mostCount, ++runningCount);
        await new Promise<void>((resolve) => bench.host.timers.after(5, resolve));
        runningCount--;
        return { text: "done" };
      }),
    );
    const look = (): void => void agent.runWaiting({ sessionCount: 8, onRoom: look });
    look();
    await until(() => asked.length === sessions.length);
    await idle(agent);
    expect(mostCount).toBe(8);
    // Eight run at once, so that one may overtake another of the eight.
    for (const [index, sessionId] of asked.entries())
      expect(Math.abs(sessions.indexOf(sessionId) - index)).toBeLessThan(16);
    expect(new Set(asked).size).toBe(sessions.length);
    expect(await bench.store.inbox.waitingSessions(1)).toEqual([]);
  });

  it("is found behind any number of sessions that somebody waits for", async () => {
    for (let index = 0; index < 300; index++)
      await bench.store.inbox.offer({
        sessionId: `w${index}`,
        inputId: "i",
        text: "Hi",
        onBusy: "wait",
        runner: nobody,
      });
    await leaveInput("left");
    const { agent } = await bench.agent([{ text: "one" }]);
    let lookCount = 0;
    while ((await agent.runWaiting({ sessionCount: 10 })) === 0) expect(++lookCount).toBeLessThan(5);
    await idle(agent);
    expect(await endOf("left", "i")).toBe("answered");
    // And then from the front again.
    await bench.store.inbox.abandon("w0", nobody.runnerId);
    while ((await agent.runWaiting({ sessionCount: 10 })) === 0) expect(++lookCount).toBeLessThan(10);
    await idle(agent);
    expect(await endOf("w0", "i")).not.toBe("pending");
  });
});

describe("rule 7.19: a turn that was answered when nobody lived who asked", () => {
  const ran: string[] = [];
  const danger = defineTool({
    name: "danger",
    description: "Is asked for.",
    input: z.object({}),
    needsApproval: true,
    execute: async () => {
      ran.push("danger");
      return "done";
    },
  });
  const asks: ScriptedStep = { calls: [{ id: "c", name: "danger", input: {} }] };

  async function left(sessionId: string): Promise<Agent> {
    const { agent } = await bench.agent([asks, { text: "done" }], {}, [danger]);
    agent.run(sessionId, "go", { inputId: "i", approval: "ask" });
    await bench.host.advance(50);
    return agent;
  }

  const answer = (sessionId: string): Promise<unknown> =>
    bench.store.turns.answer({ sessionId, callId: "c", decision: "allow", by: "elsewhere" });

  it("is gone on with by whoever serves the store, once", async () => {
    ran.length = 0;
    await (await left("a")).close();
    await (await left("b")).close();
    const { agent } = await bench.agent([{ text: "done" }, { text: "done" }], {}, [danger]);
    expect(await agent.runWaiting()).toBe(0);
    await answer("a");
    await answer("b");
    expect(await agent.runWaiting({ sessionCount: 1 })).toBe(1);
    await idle(agent);
    expect(await agent.runWaiting()).toBe(1);
    await idle(agent);
    expect([await endOf("a", "i"), await endOf("b", "i"), ran]).toEqual(["answered", "answered", ["danger", "danger"]]);
    expect(await agent.runWaiting()).toBe(0);
  });

  it("is left to the process that asked where it lives, which is woken, and to others where its tools are not here", async () => {
    ran.length = 0;
    const asker = await left("a");
    const { agent } = await bench.agent([], {}, [danger]);
    const bare = await bench.agent([]);
    await answer("a");
    expect(await agent.runWaiting()).toBe(0);
    await idle(asker);
    await (await left("b")).close();
    await answer("b");
    await bench.store.inbox.offer({ sessionId: "b", inputId: "q", text: "Hi", onBusy: "queue", runner: nobody });
    expect(await bare.agent.runWaiting()).toBe(0);
    expect([await endOf("a", "i"), await endOf("b", "i"), ran]).toEqual(["answered", "taken", ["danger"]]);
  });
});
