import { describe, expect, it, vi } from "vitest";
import type { ModelCallReport, TurnEvent } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

describe("an observer", () => {
  it("is told each event of a turn once, in order, with its turn, however many calls follow it", async () => {
    const { agent } = await bench.agent([{ text: "Hello." }]);
    const seen: TurnEvent[] = [];
    using _observer = agent.observe((event) => seen.push(event));
    const calls = [agent.run("s", "Hi", { inputId: "i" }), agent.run("s", "Hi", { inputId: "i" })];
    for (const call of calls) await bench.finished(call);
    expect(seen.map(({ type }) => type)).toEqual(["turn.started", "text.delta", "usage", "turn.finished"]);
    expect(new Set(seen.map(({ turnId }) => turnId)).size).toBe(1);
    expect(seen.every(({ sessionId, at }) => sessionId === "s" && at.endsWith("Z"))).toBe(true);
    expect(seen.at(-1)).toMatchObject({ outcome: "answered", text: "Hello." });
  });

  it("is told of a turn that nobody called for", async () => {
    const { agent } = await bench.agent([{ text: "first" }, { text: "second" }]);
    const first = agent.run("s", "one");
    const queued = agent.run("s", "two", { onBusy: "queue" });
    const ends: string[] = [];
    using _observer = agent.observe((event) => event.type === "turn.finished" && ends.push(event.text));
    expect(await bench.finished(queued)).toMatchObject({ outcome: "queued" });
    await bench.finished(first);
    const idle = vi.fn();
    void agent.idle().then(idle);
    while (idle.mock.calls.length === 0) await bench.host.advance(10);
    expect(ends).toEqual(["first", "second"]);
  });

  it("that throws harms no turn, and one that was disposed is told nothing", async () => {
    const { agent } = await bench.agent([{ text: "Hello." }]);
    const warning = vi.spyOn(process, "emitWarning").mockReturnValue();
    const told = vi.fn();
    using _broken = agent.observe(() => {
      throw new Error("broken observer");
    });
    agent.observe(told)[Symbol.dispose]();
    expect(await bench.finished(agent.run("s", "Hi"))).toMatchObject({ outcome: "answered" });
    expect(warning).toHaveBeenCalledWith(expect.objectContaining({ message: "broken observer" }));
    expect(told).not.toHaveBeenCalled();
  });
});

describe("an observer of model calls", () => {
  it("is told each request once it has ended, and nothing of what was said", async () => {
    const { agent } = await bench.agent([{ fail: new Error("secret words") }, { text: "Hello." }]);
    const calls: ModelCallReport[] = [];
    using _observer = agent.observeModelCalls((call) => calls.push(call));
    const { turnId } = await bench.finished(agent.run("s", "Hi"));
    const facts = { sessionId: "s", turnId, model: "scripted/model" };
    expect(calls).toMatchObject([{ ...facts, failure: expect.stringMatching(/^MODEL_/) }]);
    await bench.finished(agent.run("s", "Hi again"));
    expect(calls).toMatchObject([{}, { finishReason: "stop", usage: { inputTokens: 10 }, firstOutputMs: 0 }]);
    expect(JSON.stringify(calls)).not.toMatch(/Hello|secret/);
  });

  it("is told of one that a stop cut short", async () => {
    const { agent } = await bench.agent([{ silentAfter: "Hel" }]);
    const calls: ModelCallReport[] = [];
    using _observer = agent.observeModelCalls((call) => calls.push(call));
    const turn = agent.run("s", "Hi");
    await bench.host.advance(20);
    turn.stop({ hard: true });
    await bench.finished(turn);
    expect(calls).toMatchObject([{ failure: "stopped" }]);
    expect(calls[0]?.finishReason).toBeUndefined();
  });
});
