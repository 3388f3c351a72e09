import { describe, expect, it } from "vitest";
import type { Agent } from "../src/index.ts";
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
});
