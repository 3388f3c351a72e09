import { createAgent } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createMemoryStore } from "@turnkeeper/state-store";
import { describe, expect, it, vi } from "vitest";
import { SessionReader } from "../src/events/session-reader.ts";

it("a stream of a session where nothing happens rests, and tells what happens elsewhere within two seconds", async () => {
  const host = virtualHost();
  const store = createMemoryStore({ host });
  // An agent of another process, as far as the reader knows: nothing of its turns is live here.
  const scheduler = createPeriodicScheduler({ host });
  const agent = await createAgent({ store, host, scheduler, model: scriptedModel([{ text: "Good morning." }]) });
  const live = { listen: () => ({ [Symbol.dispose]: () => {} }), isLive: () => false };
  const looks = vi.spyOn(store.transcript, "load");
  const reader = await SessionReader.open({ store, host, live }, "s", "now");
  const told: string[] = [];
  const reading = (async () => {
    for await (const { event } of reader?.events() ?? []) told.push(event.type);
  })();
  await host.advance(60_000);
  expect(looks.mock.calls.length).toBeGreaterThan(30);
  expect(looks.mock.calls.length).toBeLessThan(45);

  agent.run("s", "Good morning");
  await host.advance(2000);
  expect(told).toEqual(["turn.started", "text.delta", "turn.finished"]);
  reader?.close();
  await reading;
  await agent.close();
  await scheduler.close();
});

describe("a stream of a session that is deleted", () => {
  const elsewhere = { listen: () => ({ [Symbol.dispose]: () => {} }), isLive: () => false };

  it.each([
    ["ends", false],
    ["ends too where another was begun under its id at once, as far as that one has come by then", true],
  ])("%s", async (_what, isRemade) => {
    const host = virtualHost();
    const store = createMemoryStore({ host });
    const scheduler = createPeriodicScheduler({ host });
    const says = (text: string) => ({ text });
    const agent = await createAgent({
      store,
      host,
      scheduler,
      model: scriptedModel([says("One."), says("Two."), says("Three.")]),
    });
    agent.run("s", "Hi");
    await host.advance(100);
    const reader = await SessionReader.open({ store, host, live: elsewhere }, "s", "everything");
    const told: string[] = [];
    let hasEnded = false;
    const reading = (async () => {
      for await (const { event } of reader?.events() ?? []) told.push(event.type === "text.delta" ? event.text : "");
      hasEnded = true;
    })();
    await host.advance(10_000);
    expect([told.join(""), hasEnded]).toEqual(["One.", false]);
    expect(await store.sessions.delete("s")).toMatchObject({ kind: "deleted" });
    if (isRemade) {
      agent.run("s", "Hi");
      await host.advance(50);
      agent.run("s", "Hi again");
      await host.advance(50);
      expect((await store.transcript.load("s", { all: true })).entries).toHaveLength(4);
    }
    await host.advance(3000);
    expect([told.join(""), hasEnded]).toEqual(["One.", true]);
    // Whoever comes back begins with what is there.
    const again = await SessionReader.open({ store, host, live: elsewhere }, "s", "everything");
    const anew: string[] = [];
    const readingAnew = (async () => {
      for await (const { event } of again?.events() ?? []) anew.push(event.type === "text.delta" ? event.text : "");
    })();
    await host.advance(1000);
    expect(anew.join("")).toBe(isRemade ? "Two.Three." : "");
    again?.close();
    await Promise.all([reading, readingAnew, agent.close(), host.advance(2000)]);
    await scheduler.close();
    expect(host.pendingTimerCount()).toBe(0);
  });
});
