import { describe, expect, it } from "vitest";
import { answerApproval } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";
import { livesOn } from "./life.ts";
import type { Lives } from "./life.ts";
import { notingTool } from "./noting-tool.ts";

let bench: Bench;
let lives: Lives;
let ran: string[] = [];
benchOfEachTest((fresh) => {
  bench = fresh;
  lives = livesOn(bench);
  ran = [];
});

const danger = notingTool((what) => void ran.push(what))("danger", true);

/** A turn asks about a call, and its process is gone before anybody answers. */
async function asked(): Promise<void> {
  const call = { id: "a", name: "danger", input: { what: "a" } };
  const asking = await lives.start("asks", [{ calls: [call] }], [danger]);
  asking.agent.run("s", "go", { inputId: "one", approval: "ask" });
  await bench.host.advance(50);
  await asking.end();
  asking.kill();
}

/** From a process that knows of the store alone. */
async function allow(): Promise<void> {
  const presence = lives.bystander();
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
    const without = await lives.start("without", says("I have no such tool."), []);
    const call = without.agent.run("s", text, { inputId, approval: "ask" });
    await bench.host.advance(3000);
    await allow();
    await bench.host.advance(20_000);
    expect([(await bench.store.turns.running("s"))[0]?.turn.state, ran]).toEqual(["suspended", []]);
    const having = await lives.start("having", says("Done."), [danger]);
    expect(await having.agent.runWaiting()).toBe(1);
    const expected = what === "follows it" ? "Done." : "I have no such tool.";
    expect(await bench.finished(call)).toMatchObject({ outcome: "answered", text: expected });
    expect(ran).toEqual(["a"]);
    expect(await bench.store.inbox.read("s", "one")).toMatchObject({ end: "answered" });
    await Promise.all([without.end(), having.end()]);
  });

  it("rule 7.19 control: is gone on with by it where it has its tools", async () => {
    await asked();
    const having = await lives.start("having", says("Done."), [danger]);
    const call = having.agent.run("s", text, { inputId, approval: "ask" });
    await bench.host.advance(3000);
    await allow();
    expect(await bench.finished(call)).toMatchObject({ outcome: "answered" });
    expect(ran).toEqual(["a"]);
    await having.end();
  });
});
