import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore } from "@turnkeeper/state-store";
import { virtualProcesses } from "@turnkeeper/turn-lease/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../src/index.ts";
import type { Agent, Turn, TurnEvent, TurnFinished } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";

const danger = defineTool({
  name: "danger",
  description: "Asks first.",
  input: z.object({}),
  needsApproval: true,
  execute: () => Promise.resolve("done"),
});

interface Life {
  readonly host: VirtualHost;
  readonly store: MemoryStore;
  readonly agent: Agent;
  /** The agent's own call about the message whose turn waits. */
  readonly follow: (options?: { readonly waitMs?: number }) => Turn;
}

/** A process that comes after the one which had asked, and died while nobody answered. */
async function afterTheAskersDeath(): Promise<Life> {
  const host = virtualHost();
  const store = createMemoryStore({ host });
  const processes = virtualProcesses({ host });
  const live = async (instanceId: string, steps: readonly ScriptedStep[]) => {
    const presence = processes.start({ instanceId });
    const scheduler = createPeriodicScheduler({ host });
    const agent = await createAgent({ store, model: scriptedModel(steps), tools: [danger], host, scheduler, presence });
    lives.push({ host, close: () => agent.close().then(() => scheduler.close()) });
    return { agent, presence };
  };
  const first = await live("asked", [{ calls: [{ id: "a", name: "danger", input: {} }] }]);
  const message = { inputId: "one", approval: "ask" } as const;
  first.agent.run("s", "go", message);
  await host.advance(50);
  expect((await store.turns.running("s"))[0]?.turn.state).toBe("suspended");
  first.presence.kill();
  const { agent } = await live("follows", [{ text: "The answer." }]);
  return { host, store, agent, follow: (options) => agent.run("s", "go", { ...message, ...options }) };
}

async function readAll(turn: Turn): Promise<readonly TurnEvent[]> {
  const events: TurnEvent[] = [];
  for await (const event of turn) events.push(event);
  return events;
}

const lives: { readonly host: VirtualHost; close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const { host, close } of lives.splice(0)) {
    const closed = close();
    for (let step = 0; step < 20; step++) await host.advance(50);
    await closed;
  }
});

describe("an answer to a turn whose process is dead, in a process that follows it", () => {
  it("goes on with it there, and whoever follows it is told all of it", async () => {
    const { host, agent, follow } = await afterTheAskersDeath();
    const events = readAll(follow());
    await host.advance(1000);
    expect(await agent.answer("s", "a", { decision: "allow" })).toMatchObject({ kind: "recorded", isResumed: true });
    for (let step = 0; step < 20; step++) await host.advance(10);
    const types = (await events).map(({ type }) => type).filter((type) => type !== "turn.waiting");
    expect(new Set(types)).toEqual(
      new Set([
        "input.accepted",
        "approval.requested",
        "turn.started",
        "tool.started",
        "tool.finished",
        "text.delta",
        "usage",
        "turn.finished",
      ]),
    );
  });

  it("goes on with it there though whoever follows it leaves in that moment", async () => {
    const { host, store, agent, follow } = await afterTheAskersDeath();
    let left: TurnFinished | undefined;
    void follow({ waitMs: 1000 }).result.then((finished) => (left = finished));
    await host.advance(990);
    // The follower looks again, and before the store answers its patience is over.
    const read = store.turns.read.bind(store.turns);
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    vi.spyOn(store.turns, "read").mockImplementation(async (...which) => gate.then(() => read(...which)));
    const answered = agent.answer("s", "a", { decision: "allow" });
    await host.advance(20);
    letGo();
    expect(await answered).toMatchObject({ kind: "recorded", isResumed: true });
    for (let step = 0; step < 30; step++) await host.advance(10);
    expect(left).toMatchObject({ outcome: "busy" });
    expect(await store.inbox.read("s", "one")).toMatchObject({ end: "answered" });
  });
});
