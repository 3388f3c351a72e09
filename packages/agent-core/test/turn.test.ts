import { verifyRecords } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import type { TurnEvent } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

describe("a turn", () => {
  it("streams, stores and settles one input, and frees the session before it says finished", async () => {
    const { agent } = await bench.agent([{ text: "Good morning to you." }]);
    const turn = agent.run("first", "Good morning");
    const finished = await bench.finished(turn);
    expect(finished).toMatchObject({
      outcome: "answered",
      text: "Good morning to you.",
      usage: { inputTokens: 10, outputTokens: 5 },
    });
    expect(await bench.store.leases.read("first")).toBeUndefined();

    const events = await bench.eventsOf(turn);
    expect(events.map((event) => event.type)).toEqual([
      "input.accepted",
      "turn.started",
      "text.delta",
      "usage",
      "turn.finished",
    ]);
    const records = await bench.store.sessions.records("first");
    expect(records?.inputs).toMatchObject([{ inputId: turn.inputId, state: "settled", end: "answered" }]);
    expect(records?.entries.map((entry) => entry.body.role)).toEqual(["user", "assistant"]);
    expect(records && verifyRecords(records)).toEqual([]);
  });

  it("is stored whole when its last event is told, and when its reader leaves before that", async () => {
    const { agent } = await bench.agent([{ text: "Good morning to you." }, { text: "And a good night." }]);
    const { turns } = bench.store;
    const end = turns.end.bind(turns);
    turns.end = async (request) => {
      await new Promise<void>((resolve) => void bench.host.timers.after(500, resolve));
      return end(request);
    };
    const readUntil = async (text: string, type: TurnEvent["type"]): Promise<void> => {
      for await (const event of agent.run("s", text)) if (event.type === type) return;
    };
    let stateAtLeave: string | undefined;
    const last = readUntil("1", "turn.finished").then(async () => {
      stateAtLeave = (await bench.store.sessions.records("s"))?.turns.map(({ state }) => state).join();
    });
    await bench.host.advance(1000);
    await last;
    expect(stateAtLeave).toBe("ended");
    const early = readUntil("2", "text.delta");
    await bench.host.advance(1000);
    await early;
    const records = await bench.store.sessions.records("s");
    expect(records?.inputs).toMatchObject([{ end: "answered" }, { end: "answered" }]);
    expect(records?.entries.map(({ body }) => body.role)).toEqual(["user", "assistant", "user", "assistant"]);
  });

  it("rule 7.21: gives the model the conversation so far, without loading what it knows already", async () => {
    const { agent, model } = await bench.agent([{ text: "Noted." }, { text: "Seven." }]);
    await bench.finished(agent.run("s", "My number is seven."));
    let loads = 0;
    const { load } = bench.store.transcript;
    bench.store.transcript.load = (...args) => {
      loads++;
      return load(...args);
    };
    await bench.finished(agent.run("s", "What is my number?"));
    expect(model.requests[1]?.prompt).toEqual([
      { role: "user", content: [{ type: "text", text: "My number is seven." }] },
      { role: "assistant", content: [{ type: "text", text: "Noted." }] },
      { role: "user", content: [{ type: "text", text: "What is my number?" }] },
    ]);
    expect(loads).toBe(0);
  });

  it("rule 7.21: loads the conversation again when another process has changed it", async () => {
    const first = await bench.agent([{ text: "one" }, { text: "three" }]);
    const second = await bench.agent([{ text: "two" }]);
    await bench.finished(first.agent.run("s", "1"));
    await bench.finished(second.agent.run("s", "2"));
    await bench.finished(first.agent.run("s", "3"));
    const texts = first.model.requests[1]?.prompt.map((message) => JSON.stringify(message.content));
    expect(texts).toHaveLength(5);
    expect(texts?.[3]).toContain("two");
  });

  it("runs in order what is offered to one session at once", async () => {
    const { agent, model } = await bench.agent([{ text: "a" }, { text: "b" }, { text: "c" }]);
    const turns = ["1", "2", "3"].map((text) => agent.run("s", text));
    const ends = [];
    for (const turn of turns) ends.push(await bench.finished(turn));
    expect(ends.map((end) => end.text)).toEqual(["a", "b", "c"]);
    expect(model.requests.map((request) => request.prompt.length)).toEqual([1, 3, 5]);
  });

  it("tells an empty answer from an answer: it is asked for again, and then said to have failed", async () => {
    const { agent, model } = await bench.agent([{ text: "" }, { text: "" }, { text: "" }]);
    expect(await bench.finished(agent.run("s", "hello"))).toMatchObject({ outcome: "failed", reason: "MODEL_EMPTY" });
    expect(model.requests).toHaveLength(3);
  });

  it("refuses bad arguments before anything is stored", async () => {
    const { agent } = await bench.agent([]);
    expect(() => agent.run("../etc", "x")).toThrow(/Not a session id/);
    expect(() => agent.run("a b", "x")).toThrow(/Not a session id/);
    expect(() => agent.run("s".repeat(300), "x")).toThrow(/300 characters/);
    expect(() => agent.run("s", "  \n")).toThrow(/empty/);
    expect(() => agent.run("s", "x".repeat(1_048_577))).toThrow(/at most 1048576/);
    expect(() => agent.run("s", "x", { inputId: "a b" })).toThrow(/Not an input id/);
    expect(await bench.store.sessions.list()).toEqual({ sessions: [] });
  });
});
