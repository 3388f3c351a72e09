import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { Agent, AnyTool, RunOptions, Turn } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

/** A tool that does what the test says, with no input. */
function toolThat(name: string, execute: () => Promise<string> | string): AnyTool {
  return defineTool({ name, description: name, input: z.object({}), execute: async () => execute() });
}

const callOf = (name: string): ScriptedStep => ({ calls: [{ name, input: {} }] });

/** Runs on another session from within a tool, and tells how that came out. */
const ask = async (agent: Agent, sessionId: string, options?: RunOptions): Promise<string> => {
  const { outcome, reason = "" } = await agent.run(sessionId, "from a tool", options).result;
  return `${outcome} ${reason}`.trim();
};

/** What the tools of a call's session answered. */
async function answersOf(sessionId: string): Promise<readonly unknown[]> {
  const { entries } = await bench.store.transcript.load(sessionId);
  return entries.flatMap(({ body }) => (body.role === "tool" ? [body.output] : []));
}

describe("rule 7.20: a tool that would wait for the end of its own turn", () => {
  it("is refused at once, over the turn of another session too, whoever started that session's runner", async () => {
    const agents: { inner?: Agent; outer?: Agent } = {};
    const inner = await bench.agent([{ text: "warm" }, callOf("back"), { text: "inner ends" }], {}, [
      toolThat("back", () => ask(agents.outer as Agent, "a")),
    ]);
    agents.inner = inner.agent;
    const outer = await bench.agent([callOf("there"), { text: "outer ends" }], {}, [
      toolThat("there", () => ask(agents.inner as Agent, "b")),
    ]);
    agents.outer = outer.agent;
    // The runner of b is kept busy from outside, so that it is not a tool of a that starts it.
    const outside = inner.agent.run("b", "from outside");
    expect(await bench.finished(outer.agent.run("a", "go"))).toMatchObject({ outcome: "answered", text: "outer ends" });
    expect(await bench.finished(outside)).toMatchObject({ outcome: "answered", text: "warm" });
    expect(await answersOf("b")).toEqual([expect.stringContaining("asked for another turn on it")]);
    expect(await answersOf("a")).toEqual(["answered"]);
  });

  it("is refused where two turns that know nothing of each other would wait for each other, over others in between", async () => {
    const agents: { b?: Agent; c?: Agent } = {};
    let go = (): void => {};
    const bothRun = new Promise<void>((resolve) => (go = resolve));
    const { agent } = await bench.agent([callOf("toB"), { text: "a ends" }], {}, [
      toolThat("toB", () => bothRun.then(() => ask(agents.b as Agent, "b"))),
    ]);
    agents.b = (
      await bench.agent([callOf("toC"), { text: "b ends" }, { text: "for a" }], {}, [
        toolThat("toC", () => bothRun.then(() => ask(agents.c as Agent, "c"))),
      ])
    ).agent;
    agents.c = (
      await bench.agent([callOf("toA"), { text: "c ends" }, { text: "for b" }], {}, [
        toolThat("toA", async () => {
          await bothRun;
          // The others wait by now.
          await new Promise<void>((resolve) => void bench.host.timers.after(100, resolve));
          return ask(agent, "a");
        }),
      ])
    ).agent;
    const turns = [agent.run("a", "go"), agents.b.run("b", "go"), agents.c.run("c", "go")];
    await bench.host.advance(50);
    go();
    const startedMs = bench.host.clock.monotonicMs();
    for (const turn of turns) expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    expect(bench.host.clock.monotonicMs() - startedMs).toBeLessThan(5000);
    expect(await answersOf("c")).toEqual([expect.stringContaining("on session a, which waits for one on c itself,")]);
    expect([...(await answersOf("a")), ...(await answersOf("b"))]).toEqual(["answered", "answered"]);
  });

  it("is refused though the tool of another turn, which began earlier or later, has ended meanwhile", async () => {
    let goOn = (): void => {};
    const goesOn = new Promise<void>((resolve) => (goOn = resolve));
    const agents: { own?: Agent } = {};
    const { agent } = await bench.agent([callOf("back"), { text: "a ends" }], {}, [
      toolThat("back", () => goesOn.then(() => ask(agents.own as Agent, "a"))),
    ]);
    agents.own = agent;
    const other = await bench.agent([callOf("short"), { text: "other ends" }], {}, [toolThat("short", () => "done")]);
    const turn = agent.run("a", "go");
    await bench.host.advance(50);
    expect(await bench.finished(other.agent.run("b", "go"))).toMatchObject({ outcome: "answered" });
    goOn();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "a ends" });
    expect(await answersOf("a")).toEqual([expect.stringContaining("asked for another turn on it")]);
  });

  it("costs nothing where no tool runs: contexts are on from the first call until the last has ended", async () => {
    const begun = vi.spyOn(AsyncLocalStorage.prototype, "run");
    const ended = vi.spyOn(AsyncLocalStorage.prototype, "disable");
    try {
      const plain = await bench.agent([{ text: "words alone" }]);
      expect(await bench.finished(plain.agent.run("a", "go"))).toMatchObject({ outcome: "answered" });
      expect(begun).not.toHaveBeenCalled();
      const calling = await bench.agent([callOf("one"), { text: "done" }], {}, [toolThat("one", () => "done")]);
      expect(await bench.finished(calling.agent.run("b", "go"))).toMatchObject({ outcome: "answered" });
      expect([begun.mock.calls.length, ended.mock.calls.length]).toEqual([1, 1]);
    } finally {
      begun.mockRestore();
      ended.mockRestore();
    }
  });

  it("waits for no end with the input of its own turn, where the call need not", async () => {
    const told: string[] = [];
    const agents: { own?: Agent } = {};
    const { agent } = await bench.agent([callOf("again"), { text: "on" }], {}, [
      toolThat("again", async () => {
        for (const onBusy of ["reject", "queue", "steer"] as const) {
          const again: Turn | undefined = agents.own?.run("s", "go", { inputId: "one", onBusy });
          const { outcome, reason = "" } = (await again?.result) ?? { outcome: "?" };
          told.push(`${outcome} ${reason}`.trim());
        }
        return "done";
      }),
    ]);
    agents.own = agent;
    expect(await bench.finished(agent.run("s", "go", { inputId: "one" }))).toMatchObject({ outcome: "answered" });
    expect(told).toEqual(["busy session_busy", "queued", "queued"]);
  });
});

describe("whoever waits for nothing", () => {
  it("is not refused: code that a turn left behind, once that turn has ended", async () => {
    let later: () => Promise<string> = async () => "not yet";
    const agents: { own?: Agent } = {};
    const { agent } = await bench.agent([callOf("leave"), { text: "first" }, { text: "second" }], {}, [
      toolThat("leave", () => {
        const started = new Promise<void>((resolve) => void bench.host.timers.after(5_000, resolve));
        const left = started.then(() => ask(agents.own as Agent, "s"));
        later = () => left;
        return "left";
      }),
    ]);
    agents.own = agent;
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ text: "first" });
    let told = "";
    void later().then((answer) => (told = answer));
    await bench.host.advance(10_000);
    expect(told).toBe("answered");
  });

  it("is not refused: a tool that asks for a session whose turn waited for this one's before, and waits no more", async () => {
    const agents: { b?: Agent } = {};
    let goOn = (): void => {};
    const goesOn = new Promise<void>((resolve) => (goOn = resolve));
    const { agent } = await bench.agent([callOf("toB"), { text: "a ends" }, { text: "for b" }], {}, [
      toolThat("toB", async () => {
        const answer = await ask(agents.b as Agent, "b");
        await goesOn;
        return answer;
      }),
    ]);
    agents.b = (
      await bench.agent([{ text: "for a" }, callOf("toA"), { text: "b ends" }], {}, [
        toolThat("toA", () => ask(agent, "a")),
      ])
    ).agent;
    const first = agent.run("a", "go");
    await bench.host.advance(50);
    const second = agents.b.run("b", "go");
    await bench.host.advance(50);
    expect(await bench.store.inbox.pending("a")).toHaveLength(1);
    goOn();
    for (const turn of [first, second]) expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    expect(await answersOf("b")).toEqual(["answered"]);
  });

  it("is not refused: a tool of a runner that a tool of the idle session once started", async () => {
    const agents: { inner?: Agent; outer?: Agent } = {};
    const inner = await bench.agent([{ text: "for the tool" }, callOf("back"), { text: "for outside" }], {}, [
      toolThat("back", () => ask(agents.outer as Agent, "a")),
    ]);
    agents.inner = inner.agent;
    let outside: Turn | undefined;
    const outer = await bench.agent([callOf("there"), { text: "first" }, { text: "second" }], {}, [
      toolThat("there", async () => {
        const answer = ask(agents.inner as Agent, "b");
        return answer;
      }),
    ]);
    agents.outer = outer.agent;
    const first = outer.agent.run("a", "go");
    // It joins the runner that the tool has started.
    while (inner.model.requests.length === 0) await bench.host.advance(1);
    outside = inner.agent.run("b", "from outside");
    expect(await bench.finished(first)).toMatchObject({ outcome: "answered", text: "first" });
    expect(await bench.finished(outside)).toMatchObject({ outcome: "answered", text: "for outside" });
    expect(await answersOf("b")).toEqual(["answered"]);
  });
});
