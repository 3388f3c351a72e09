import type { OnBusy } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool } from "../src/index.ts";
import type { Agent, Turn } from "../src/index.ts";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

interface Scene {
  readonly agent: Agent;
  readonly turn: Turn;
  answer(): void;
}

/** A turn on session "s" that answers its input "pay" once it is told to. */
async function paying(onBusy: OnBusy = "wait"): Promise<Scene> {
  let answer = (): void => {};
  const told = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const { agent } = await bench.agent([
    async () => {
      await told;
      return { text: "paid" };
    },
    { text: "next" },
  ]);
  const turn = agent.run("s", "pay", { inputId: "pay", onBusy });
  await bench.host.advance(20);
  return { agent, turn, answer };
}

async function stopAsked(): Promise<unknown> {
  return (await bench.store.turns.running("s"))[0]?.turn.stop;
}

/** The call's end, if it has come within the next 50 ms. */
async function endNow(turn: Turn): Promise<string | undefined> {
  let outcome: string | undefined;
  void turn.result.then((finished) => (outcome = finished.outcome));
  await bench.host.advance(50);
  return outcome;
}

describe("INT-2: a repeat with `interrupt`", () => {
  it.each(["in the same process", "in another process"])(
    "of an input that a turn has stops nothing, and is told what the first call is told, %s",
    async (where) => {
      const { agent, turn, answer } = await paying("interrupt");
      const other = where === "in the same process" ? agent : (await bench.agent([])).agent;
      const again = other.run("s", "pay", { inputId: "pay", onBusy: "interrupt" });
      await bench.host.advance(1000);
      expect(await stopAsked()).toBeUndefined();
      answer();
      expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "paid" });
      expect(await bench.finished(again)).toMatchObject({ outcome: "answered", text: "paid" });
    },
  );

  it("of an input that has ended is told its end, and the turn that runs now runs on", async () => {
    const { agent } = await bench.agent([{ text: "long ago" }]);
    await bench.finished(agent.run("s", "old", { inputId: "old" }));
    const { turn, answer } = await paying();
    const again = agent.run("s", "old", { inputId: "old", onBusy: "interrupt" });
    expect(await bench.finished(again)).toMatchObject({ outcome: "answered", text: "long ago" });
    await bench.host.advance(1000);
    expect(await stopAsked()).toBeUndefined();
    answer();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
  });

  it("of an input that still waits stops the turn that is in its way", async () => {
    const { turn } = await paying();
    const { agent } = await bench.agent([{ text: "at last" }]);
    const waiting = agent.run("s", "hurry", { inputId: "hurry" });
    await bench.host.advance(20);
    const urgent = agent.run("s", "hurry", { inputId: "hurry", onBusy: "interrupt" });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "user-message" });
    for (const call of [waiting, urgent]) expect(await bench.finished(call)).toMatchObject({ text: "at last" });
  });
});

describe("a repeat that does not wait", () => {
  it.each([
    ["queue", "queued"],
    ["steer", "queued"],
    ["reject", "busy"],
  ] as const)("leaves at once where a turn has the input (%s)", async (onBusy, outcome) => {
    const { agent, turn, answer } = await paying();
    const { agent: other } = await bench.agent([]);
    for (const one of [agent, other])
      expect(await endNow(one.run("s", "pay", { inputId: "pay", onBusy }))).toBe(outcome);
    answer();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
  });

  it.each([
    ["queue", "queued"],
    ["steer", "queued"],
    ["reject", "busy"],
  ] as const)("leaves at once where the input waits, whoever is to run it (%s)", async (onBusy, outcome) => {
    const { turn, answer } = await paying();
    const { agent } = await bench.agent([{ text: "waited" }, { text: "and run" }]);
    const { agent: other } = await bench.agent([]);
    const waiting = agent.run("s", "later", { inputId: "later" });
    expect(await endNow(agent.run("s", "orphan", { inputId: "orphan", onBusy: "queue" }))).toBe("queued");
    for (const one of [agent, other]) {
      expect(await endNow(one.run("s", "later", { inputId: "later", onBusy }))).toBe(outcome);
      expect(await endNow(one.run("s", "orphan", { inputId: "orphan", onBusy }))).toBe(outcome);
    }
    answer();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
    expect(await bench.finished(waiting)).toMatchObject({ outcome: "answered", text: "waited" });
    await bench.host.advance(1000);
    expect(await bench.store.inbox.read("s", "orphan")).toMatchObject({ state: "settled", end: "answered" });
  });

  it.each(["queue", "steer", "reject"] as const)("of an ended input is told its end (%s)", async (onBusy) => {
    const { turn, answer } = await paying();
    answer();
    await bench.finished(turn);
    const { agent } = await bench.agent([{ silentAfter: "…" }]);
    const running = agent.run("s", "another");
    await bench.host.advance(20);
    const again = agent.run("s", "pay", { inputId: "pay", onBusy });
    expect(await bench.finished(again)).toMatchObject({ outcome: "answered", text: "paid" });
    running.stop();
    await bench.finished(running);
  });

  it.each(["queue", "steer", "reject"] as const)("runs an orphan of a free session itself (%s)", async (onBusy) => {
    const { turn, agent: holder } = await paying();
    const { agent } = await bench.agent([{ text: "adopted" }]);
    expect(await endNow(agent.run("s", "orphan", { inputId: "orphan", onBusy: "queue" }))).toBe("queued");
    // The holder leaves without running it.
    const closing = holder.close();
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "shutdown" });
    await bench.host.advance(100);
    await closing;
    expect(await bench.store.inbox.read("s", "orphan")).toMatchObject({ state: "pending" });
    const again = agent.run("s", "orphan", { inputId: "orphan", onBusy });
    expect(await bench.finished(again)).toMatchObject({ outcome: "answered", text: "adopted" });
  });

  it("leaves at once inside the very turn that has its input", async () => {
    const outcomes: string[] = [];
    const repeat = defineTool({
      name: "repeat",
      description: "Repeats its own turn's input.",
      input: z.object({}),
      execute: async () => {
        for (const onBusy of ["queue", "steer", "reject"] as const)
          outcomes.push((await agent.run("s", "go", { inputId: "go", onBusy }).result).outcome);
        return "repeated";
      },
    });
    const { agent } = await bench.agent([{ calls: [{ name: "repeat", input: {} }] }, { text: "done" }], {}, [repeat]);
    const turn = agent.run("s", "go", { inputId: "go" });
    await bench.host.advance(1000);
    expect(outcomes).toEqual(["queued", "queued", "busy"]);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered" });
  });
});
