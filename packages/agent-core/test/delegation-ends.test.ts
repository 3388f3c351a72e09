/** Calls that have no result of their own: what they were told of their children is told by a message. */
import type { LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

const childs: ScriptedStep = { text: "Found it." };

function modelOf(own: readonly ScriptedStep[]): ReturnType<typeof scriptedModel> {
  const left = [...own];
  const step: ScriptedStep = ({ prompt }) =>
    JSON.stringify(prompt[0]).includes("You are a subagent") ? childs : (left.shift() ?? { text: "(no more steps)" });
  return scriptedModel(Array.from({ length: 50 }, () => step));
}

async function noticeStates(): Promise<readonly string[]> {
  const records = await bench.store.sessions.records("s");
  return (records?.inputs ?? []).flatMap(({ child, state }) => (child ? [state] : []));
}

describe("rule 7.20: a child whose call has no result", () => {
  it("is told of by a message where the call's tool failed after the child's end", async () => {
    const failing = defineTool({
      name: "failing",
      description: "Fails behind its child.",
      input: z.object({}),
      execute: async (_input, context) => {
        await context.delegate?.("look");
        throw new Error("it could not use what it got");
      },
    });
    const model = modelOf([{ calls: [{ name: "failing", input: {} }] }, { text: "Then so." }]);
    const agent = await bench.agentOn(model, {}, [failing]);
    await bench.finished(agent.run("s", "go"));
    // The checkpoint behind the failed call has it.
    expect(JSON.stringify(model.requests.at(-1)?.prompt).split("Found it.")).toHaveLength(2);
    expect(await noticeStates()).toEqual(["settled"]);
  });

  it("is told of by a message where the call was left behind", async () => {
    const deaf = defineTool({
      name: "deaf",
      description: "Hears no stop.",
      input: z.object({}),
      execute: async (_input, context) => {
        await context.delegate?.("look");
        return new Promise<never>(() => {});
      },
    });
    const model = modelOf([{ calls: [{ name: "deaf", input: {} }] }, { text: "Next turn." }]);
    const agent = await bench.agentOn(model, {}, [deaf]);
    const turn = agent.run("s", "go");
    await bench.host.advance(50);
    turn.stop({ hard: true });
    await bench.finished(turn);
    expect(await noticeStates()).toEqual(["pending"]);
    await bench.finished(agent.run("s", "and?"));
    expect(JSON.stringify(model.requests.at(-1)?.prompt).split("Found it.")).toHaveLength(2);
    expect(await noticeStates()).toEqual(["settled"]);
  });

  it("leaves its parent on time though it never settles: a model that hears no abort is waited for by nobody", async () => {
    const silent: ScriptedStep = {
      parts: [{ type: "stream-start", warnings: [] }],
      isEndless: true,
    };
    const step: ScriptedStep = ({ prompt }) =>
      JSON.stringify(prompt[0]).includes("You are a subagent") ? silent : { calls: [{ name: "delegate", input: {} }] };
    const model = scriptedModel([step, step]);
    const delegate = defineTool({
      name: "delegate",
      description: "Delegates.",
      input: z.object({}),
      execute: async (_input, context) => ({ ...(await context.delegate?.("look")) }),
    });
    const agent = await bench.agentOn(model, {}, [delegate]);
    const turn = agent.run("s", "go");
    await bench.host.advance(50);
    const stoppedAtMs = bench.host.clock.monotonicMs();
    turn.stop({ hard: true });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(bench.host.clock.monotonicMs() - stoppedAtMs).toBeLessThan(13_000);
    await bench.host.advance(15_000);
    expect(await bench.store.turns.running()).toEqual([]);
    expect(await noticeStates()).toHaveLength(1);
  });

  it.each([1000, 30_000])(
    "leaves no transport open: one that hears no stop and answers %i ms later is cancelled once it is there, once",
    async (lateMs) => {
      const cancelled: unknown[] = [];
      let readCount = 0;
      const late = new ReadableStream<LanguageModelV3StreamPart>(
        { pull: () => void readCount++, cancel: (reason) => void cancelled.push(reason) },
        { highWaterMark: 0 },
      );
      const step: ScriptedStep = { calls: [{ name: "delegate", input: {} }] };
      const scripted = scriptedModel([step]);
      const doStream: typeof scripted.languageModel.doStream = async (request) => {
        if (!JSON.stringify(request.prompt[0]).includes("You are a subagent"))
          return scripted.languageModel.doStream(request);
        await new Promise<void>((resolve) => void bench.host.timers.after(50 + lateMs, resolve));
        return { stream: late };
      };
      const delegate = defineTool({
        name: "delegate",
        description: "Delegates.",
        input: z.object({}),
        execute: async (_input, context) => ({ ...(await context.delegate?.("look")) }),
      });
      const languageModel = { ...scripted.languageModel, doStream };
      const agent = await bench.agentOn({ ...scripted, languageModel }, {}, [delegate]);
      const turn = agent.run("s", "go");
      await bench.host.advance(50);
      turn.stop({ hard: true });
      expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted" });
      await bench.host.advance(lateMs + 5000);
      expect(cancelled).toHaveLength(1);
      expect(readCount).toBe(0);
      // A stream that was let go of belongs to whoever made it: nothing holds it, and nothing lets go of it again.
      expect(late.locked).toBe(false);
      expect(await noticeStates()).toHaveLength(1);
    },
  );
});
