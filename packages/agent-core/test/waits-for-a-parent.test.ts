import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { AnyTool, TurnFinished } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { delegate } from "./delegating-tool.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { livesOn } from "./life.ts";
import type { Life, Lives } from "./life.ts";
import { notingTool } from "./noting-tool.ts";

let bench: Bench;
let lives: Lives;
let told: TurnFinished[] = [];
/** Whose agent a tool asks: that of the process it runs in. */
let here: Life | undefined;
benchOfEachTest((fresh) => {
  bench = fresh;
  lives = livesOn(bench);
  told = [];
  here = undefined;
});

/** Has a message answered on another session, and waits for that. */
const askSession = defineTool({
  name: "ask_session",
  description: "Asks another session.",
  input: z.object({ sessionId: z.string(), onBusy: z.enum(["wait", "queue"]) }),
  execute: async ({ sessionId, onBusy }) => {
    if (!here) throw new Error("Nobody is here.");
    const finished = await here.agent.run(sessionId, "and what do you say?", { onBusy }).result;
    told.push(finished);
    return finished.outcome;
  },
});

const tools: readonly AnyTool[] = [delegate, askSession, notingTool(() => {})("danger", true)];

const calls = (name: string, input: Readonly<Record<string, string>>): ScriptedStep => ({
  calls: [{ id: name, name, input }],
});

/** The child asks about a call, and then asks `sessionId` for an answer. */
const stepsOf = (sessionId: string, onBusy: "wait" | "queue"): readonly ScriptedStep[] => {
  const step: ScriptedStep = ({ prompt }) => {
    const said = JSON.stringify(prompt);
    const isChild = said.includes("You are a subagent");
    const doneCount = prompt.filter(({ role }) => role === "tool").length;
    if (!isChild && doneCount === 0 && said.includes("hand it on")) return one(calls("delegate", { task: "do it" }));
    if (isChild && doneCount === 0) return one(calls("danger", { what: "it" }));
    if (isChild && doneCount === 1) return one(calls("ask_session", { sessionId, onBusy }));
    return { text: "Done." };
  };
  return Array.from({ length: 50 }, () => step);
};
const one = (step: ScriptedStep): Exclude<ScriptedStep, (...args: never) => unknown> => {
  if (typeof step === "function") throw new Error("A plain step was expected.");
  return step;
};

/** The parent is suspended over its child, whose process dies; the child goes on in another. */
async function childGoesOnElsewhere(
  steps: readonly ScriptedStep[],
): Promise<{ readonly child: string; end(): Promise<void> }> {
  const first = await lives.start("first", steps, tools);
  void first.agent.run("s", "hand it on", { inputId: "one", approval: "ask" });
  await bench.host.advance(100);
  const { sessions } = await bench.store.sessions.list();
  const child = sessions.find(({ parent }) => parent !== undefined)?.sessionId ?? "";
  expect((await bench.store.turns.running("s"))[0]?.turn.state).toBe("suspended");
  first.kill();
  const second = await lives.start("second", steps, tools);
  here = second;
  await second.agent.answer(child, "danger", { decision: "allow" });
  await bench.host.advance(10_000);
  return { child, end: async () => void (await Promise.all([first.end(), second.end()])) };
}

describe("a child in another process than the parent that waits for it", () => {
  it("rule 7.20: is refused a wait for that parent, and both come to their ends", async () => {
    const { child, end } = await childGoesOnElsewhere(stepsOf("s", "wait"));
    expect(told).toMatchObject([{ outcome: "failed", reason: "TURN_REENTRANT" }]);
    expect(told[0]?.detail).toContain("session s");
    for (const sessionId of ["s", child])
      expect((await bench.store.sessions.records(sessionId))?.turns).toMatchObject([{ outcome: "answered" }]);
    // Nothing of the refused message was stored.
    expect((await bench.store.sessions.records("s"))?.inputs.filter((input) => !input.child)).toHaveLength(1);
    await end();
  });

  it.each([
    ["leave a message to that parent", "s", "queue", "queued"],
    ["wait for anybody else", "other", "wait", "answered"],
  ] as const)("rule 7.20 control: may %s", async (_what, sessionId, onBusy, outcome) => {
    const { child, end } = await childGoesOnElsewhere(stepsOf(sessionId, onBusy));
    await bench.host.advance(5000);
    expect(told).toMatchObject([{ outcome }]);
    expect((await bench.store.sessions.records(child))?.turns).toMatchObject([{ outcome: "answered" }]);
    await end();
  });
});
