import { createAgent } from "@turnkeeper/agent-core";
import { scriptedModel } from "@turnkeeper/agent-core/testing";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createMemoryStore } from "@turnkeeper/state-store";
import { expect, it, vi } from "vitest";
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
