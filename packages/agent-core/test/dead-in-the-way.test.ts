import { openProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Bench } from "./bench.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
let presence: ProcessPresence;
benchOfEachTest((fresh) => {
  bench = fresh;
});
beforeEach(async () => {
  presence = await openProcessPresence({ host: bench.host });
});
afterEach(() => presence.close());

/** A message of a process that is gone: nothing of it is registered anywhere. */
async function waiterThatDied(name: string): Promise<void> {
  const runner = { ...presence.identity, runnerId: name };
  await bench.store.inbox.offer({ sessionId: "s", inputId: name, text: name, onBusy: "wait", runner });
}

async function turnThatDied(): Promise<void> {
  await waiterThatDied("held");
  const holder = { ...presence.identity, holderId: "gone" };
  const begin = { turnId: "turn-of-the-dead", runnerId: "held" };
  await bench.store.leases.acquire({ sessionId: "s", holder, ttlMs: 300_000, begin });
}

async function endsOf(): Promise<readonly (string | undefined)[]> {
  const records = await bench.store.sessions.records("s");
  return records?.inputs.map((input) => (input.state === "settled" ? input.end : undefined)) ?? [];
}

describe("a session on which a dead process has its name is not busy", () => {
  it.each(["queue", "steer", "reject"] as const)("%s: as its holder", async (onBusy) => {
    // Its reaper has had its first round.
    const { agent } = await bench.agent([{ text: "run here" }]);
    await bench.host.advance(10);
    await turnThatDied();
    const turn = agent.run("s", "now", { onBusy });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "run here" });
    expect(await endsOf()).toEqual(["interrupted", "answered"]);
  });

  it.each(["queue", "steer", "reject"] as const)("%s: in its queue, whose messages come first", async (onBusy) => {
    await waiterThatDied("first");
    await waiterThatDied("second");
    const { agent } = await bench.agent([{ text: "1" }, { text: "2" }, { text: "3" }]);
    const turn = agent.run("s", "now", { onBusy });
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "3" });
    expect(await endsOf()).toEqual(["answered", "answered", "answered"]);
  });

  it("queue: as its holder and in its queue", async () => {
    const { agent } = await bench.agent([{ text: "1" }, { text: "2" }]);
    await bench.host.advance(10);
    await turnThatDied();
    await waiterThatDied("waited");
    expect(await bench.finished(agent.run("s", "now", { onBusy: "queue" }))).toMatchObject({ text: "2" });
    expect(await endsOf()).toEqual(["interrupted", "answered", "answered"]);
  });

  it("control: a waiter that lives makes it busy, whoever died behind it", async () => {
    const living = presence.register("living");
    await waiterThatDied("living");
    await waiterThatDied("behind it");
    const { agent } = await bench.agent([]);
    expect(await bench.finished(agent.run("s", "no", { onBusy: "reject" }))).toMatchObject({ outcome: "busy" });
    expect(await bench.finished(agent.run("s", "later", { onBusy: "queue" }))).toMatchObject({ outcome: "queued" });
    expect((await bench.store.inbox.pending("s")).map(({ runner }) => runner?.runnerId)).toEqual([
      "living",
      "behind it",
      undefined,
    ]);
    living[Symbol.dispose]();
  });
});

it("rule 7.18: a stop of a turn whose process has died finds nothing running, and settles it", async () => {
  const { agent } = await bench.agent([]);
  await bench.host.advance(10);
  await turnThatDied();
  expect(await agent.stop("s")).toEqual({ kind: "nothing-running" });
  expect(await endsOf()).toEqual(["interrupted"]);
});
