import { CodedError } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { Holder } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { describe, expect, it, vi } from "vitest";
import { createAgent, reapTurns } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { Bench } from "./bench.ts";
import { failingStore } from "./failing-store.ts";
import { benchOfEachTest } from "./fresh-bench.ts";

let bench: Bench;
benchOfEachTest((fresh) => {
  bench = fresh;
});

function overloaded(): Error {
  return new CodedError("MODEL_OVERLOADED", "The provider is overloaded.", { context: { retryable: true } });
}

describe("a model call that fails", () => {
  it("is repeated while nothing of its answer was seen, and says so", async () => {
    const { agent, model } = await bench.agent([{ fail: overloaded() }, { fail: overloaded() }, { text: "at last" }]);
    const turn = agent.run("s", "hello");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "answered", text: "at last" });
    expect((await bench.eventsOf(turn)).filter((event) => event.type === "model.retry")).toHaveLength(2);
    expect(model.requests).toHaveLength(3);
  });

  it("is not repeated once text was seen: where nothing may mend it, the partial answer is kept and the turn fails", async () => {
    const { agent, model } = await bench.agent([
      {
        parts: [
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: "Half an ans" },
        ],
        error: new CodedError("MODEL_QUOTA", "No credit is left."),
      },
      { text: "whole" },
    ]);
    const turn = agent.run("s", "hello");
    expect(await bench.finished(turn)).toMatchObject({
      outcome: "failed",
      text: "Half an ans",
      detail: expect.stringContaining("partial"),
    });
    expect(model.requests).toHaveLength(1);
    const last = (await bench.store.transcript.load("s")).entries.at(-1);
    expect(last?.body).toMatchObject({ role: "assistant", partial: true });
    expect(await bench.finished(agent.run("s", "again"))).toMatchObject({ outcome: "answered", text: "whole" });
  });

  it("that a repeat cannot mend fails the turn at once, and the session is usable", async () => {
    const { agent } = await bench.agent([
      { fail: new CodedError("MODEL_AUTH", "The key was refused.") },
      { text: "fine" },
    ]);
    expect(await bench.finished(agent.run("s", "hello"))).toMatchObject({ outcome: "failed", reason: "MODEL_AUTH" });
    expect(await bench.finished(agent.run("s", "hello"))).toMatchObject({ outcome: "answered" });
  });
});

/** A grant that a process of this boot took and died with: nobody has its pid. */
async function deadHolder(sessionId: string, inputId: string): Promise<Holder> {
  const presence = await openProcessPresence({ host: bench.host });
  const holder: Holder = {
    ...presence.identity,
    holderId: bench.host.random.id(),
    instanceId: "gone",
    pid: 4_194_301,
    pidStart: "1",
  };
  await presence.close();
  const runner = { ...holder, runnerId: "gone-runner" };
  await bench.store.inbox.offer({ sessionId, inputId, text: "first", onBusy: "wait", runner });
  const granted = await bench.store.leases.acquire({
    sessionId,
    holder,
    ttlMs: 300_000,
    begin: { turnId: "dead-turn", runnerId: "gone-runner" },
  });
  expect(granted.kind).toBe("granted");
  const grant = { sessionId, holderId: holder.holderId, fencingToken: 1 };
  await bench.store.transcript.append({
    grant,
    turnId: "dead-turn",
    entries: [
      { key: "a", body: { role: "assistant", parts: [{ type: "tool-call", callId: "c", name: "shell", input: {} }] } },
    ],
  });
  return holder;
}

describe("a turn whose process died", () => {
  it("PAIR-1: is settled by the next one, its open call with an unknown outcome, and never run again", async () => {
    await deadHolder("s", "lost");
    const { agent, model } = await bench.agent([{ text: "going on" }]);
    expect(await bench.finished(agent.run("s", "hello?"))).toMatchObject({ outcome: "answered", text: "going on" });
    expect(await bench.store.inbox.read("s", "lost")).toMatchObject({ state: "settled", end: "interrupted" });
    expect(await bench.store.turns.read("s", "dead-turn")).toMatchObject({ outcome: "interrupted", reason: "crashed" });
    expect(JSON.stringify(model.requests[0]?.prompt)).toContain("Outcome unknown");
    const records = await bench.store.sessions.records("s");
    expect(records && verifyRecords(records)).toEqual([]);
  });

  it("PAIR-1 control: without the settlement the call stays without a result", async () => {
    await deadHolder("s", "lost");
    const before = await bench.store.sessions.records("s");
    // The same records with the turn merely marked as ended: what a store would hold that did not close its calls.
    const turns = before?.turns.map((turn) => ({
      ...turn,
      state: "ended" as const,
      outcome: "interrupted" as const,
      endedAtMs: 0,
    }));
    const violations = before && turns ? verifyRecords({ ...before, turns }) : [];
    expect(violations.map((violation) => violation.rule)).toContain("PAIR-1");
  });

  it("is told to a second caller of its input as crashed", async () => {
    await deadHolder("s", "lost");
    const { agent } = await bench.agent([]);
    expect(await bench.finished(agent.run("s", "first", { inputId: "lost" }))).toMatchObject({
      outcome: "interrupted",
      reason: "crashed",
    });
  });

  it("is settled by any agent on the store, at its start, though nobody asks for its session", async () => {
    await deadHolder("s", "lost");
    await bench.agent([]);
    await bench.host.advance(1000);
    expect(await bench.store.turns.running()).toEqual([]);
    expect(await bench.store.inbox.read("s", "lost")).toMatchObject({ state: "settled", end: "interrupted" });
  });

  it("is settled within half a minute by an agent that was there before", async () => {
    await bench.agent([]);
    await bench.host.advance(1000);
    await deadHolder("s", "lost");
    await bench.host.advance(31_000);
    expect(await bench.store.turns.running()).toEqual([]);
  });

  it("is settled with all others once the store answers again, however often it failed while they were gone through", async () => {
    const names = ["a", "b", "c"];
    for (const name of names) await deadHolder(name, `lost-${name}`);
    const store = failingStore(bench.store);
    store.code = "STORE_UNAVAILABLE";
    const warning = vi.spyOn(process, "emitWarning").mockReturnValue();
    await bench.agent([], {}, [], undefined, store);
    await bench.host.advance(40_000);
    // The next round loses its store after its first settlement.
    store.code = undefined;
    const settle = bench.store.turns.settleForeign.bind(bench.store.turns);
    bench.store.turns.settleForeign = async (grant) => {
      const result = await settle(grant);
      store.code = "STORE_UNAVAILABLE";
      return result;
    };
    await bench.host.advance(31_000);
    expect((await bench.store.turns.running()).length).toBe(2);
    bench.store.turns.settleForeign = settle;
    store.code = undefined;
    await bench.host.advance(31_000);
    warning.mockRestore();
    expect(await bench.store.turns.running()).toEqual([]);
    for (const name of names)
      expect(await bench.store.inbox.read(name, `lost-${name}`)).toMatchObject({ end: "interrupted" });
  });

  it("rule 7.14: has its processes ended before the next turn's first side effect", async () => {
    const events: string[] = [];
    await deadHolder("s", "lost");
    const presence = await openProcessPresence({ host: bench.host });
    const { store, host, scheduler } = bench;
    const model = scriptedModel([
      () => {
        events.push("model call");
        return { text: "on" };
      },
    ]);
    const endProcesses = async (marker: Readonly<Record<string, string>>): Promise<void> => {
      events.push(`ending ${Object.values(marker).join(" ")}`);
      await new Promise<void>((resolve) => void host.timers.after(300, resolve));
      events.push("ended");
    };
    const agent = await createAgent({ store, model, host, scheduler, presence, endProcesses });
    expect(await bench.finished(agent.run("s", "go on"))).toMatchObject({ outcome: "answered" });
    // By the reaper, by the grant, or by both: whoever frees the session has seen to it first.
    expect(new Set(events.slice(0, -1))).toEqual(new Set(["ending dead-turn", "ended"]));
    expect(events.at(-1)).toBe("model call");
    const closing = agent.close();
    await host.advance(2000);
    await closing;
    await presence.close();
  });

  it("rule 7.14: has its processes ended by the next grant though somebody else settled it, until a turn has ended itself", async () => {
    const holder = await deadHolder("s", "lost");
    const grant = { sessionId: "s", holderId: holder.holderId, fencingToken: 1 };
    // As by a reaper in another process, which was killed before it could end anything.
    expect(await bench.store.turns.settleForeign(grant)).toMatchObject({ kind: "settled" });
    const { store, host, scheduler } = bench;
    const presence = await openProcessPresence({ host });
    const events: string[] = [];
    const step = (): { readonly text: string } => {
      events.push("model call");
      return { text: "on" };
    };
    const endProcesses = async ({ TURNKEEPER_TURN }: Readonly<Record<string, string>>): Promise<void> => {
      await new Promise<void>((resolve) => void host.timers.after(300, resolve));
      events.push(`ended ${TURNKEEPER_TURN}`);
    };
    const model = scriptedModel([step, step]);
    const agent = await createAgent({ store, model, host, scheduler, presence, endProcesses });
    expect(await bench.finished(agent.run("s", "go on"))).toMatchObject({ outcome: "answered" });
    expect(await bench.finished(agent.run("s", "and on"))).toMatchObject({ outcome: "answered" });
    expect(events).toEqual(["ended dead-turn", "model call", "model call"]);
    const closing = agent.close();
    await host.advance(2000);
    await closing;
    await presence.close();
  });

  it("rule 7.14: keeps the session until the reaper has ended its processes, and frees it though that fails", async () => {
    await deadHolder("s", "lost");
    const presence = await openProcessPresence({ host: bench.host });
    let runningCount = 0;
    const endProcesses = async (): Promise<void> => {
      runningCount = (await bench.store.turns.running("s")).length;
      throw new Error("no permission");
    };
    await expect(reapTurns({ store: bench.store, presence, endProcesses }, "s")).rejects.toThrow("no permission");
    expect(runningCount).toBe(1);
    expect(await bench.store.turns.running("s")).toEqual([]);
    await presence.close();
  });

  it("does not make a session busy", async () => {
    await deadHolder("s", "lost");
    const { agent } = await bench.agent([{ text: "free" }]);
    expect(await bench.finished(agent.run("s", "now", { onBusy: "reject" }))).toMatchObject({
      outcome: "answered",
      text: "free",
    });
  });
});

describe("a lost lease", () => {
  it("stops the turn at once, is attributed to the lease, and leaves the newcomer's transcript alone", async () => {
    const { agent } = await bench.agent([{ silentAfter: "…" }], { lease: { ttlMs: 10_000, renewEveryMs: 1000 } });
    const turn = agent.run("s", "go");
    await bench.host.advance(100);
    const lease = await bench.store.leases.read("s");
    if (!lease) throw new Error("The turn holds no lease.");
    const stolen = { sessionId: "s", holderId: lease.holder.holderId, fencingToken: lease.fencingToken };
    expect(await bench.store.turns.settleForeign(stolen)).toMatchObject({ kind: "settled" });
    const after = await bench.store.sessions.records("s");
    await bench.host.advance(1500);
    expect(await bench.finished(turn)).toMatchObject({ outcome: "interrupted", reason: "lease-lost", text: "…" });
    expect(await bench.store.sessions.records("s")).toEqual(after);
  });
});

describe("an offer whose answer was lost", () => {
  it.each(["reject", "queue", "steer"] as const)(
    "%s: is run by whoever made it, without another look",
    async (onBusy) => {
      const { inbox, leases } = bench.store;
      const offer = inbox.offer.bind(inbox);
      const pending = inbox.pending.bind(inbox);
      const acquire = leases.acquire.bind(leases);
      let offerCount = 0;
      inbox.offer = async (request) => {
        const answer = await offer(request);
        if (++offerCount === 1) throw new CodedError("STORE_IO", "The outcome of the commit is unknown.");
        return answer;
      };
      // A look for what the dead left would fail now.
      let hasAcquired = false;
      inbox.pending = async (sessionId) => {
        if (!hasAcquired) throw new CodedError("STORE_IO", "The store cannot be read.");
        return await pending(sessionId);
      };
      leases.acquire = async (request) => {
        hasAcquired = true;
        return await acquire(request);
      };
      const { agent } = await bench.agent([{ text: "here" }]);
      expect(await bench.finished(agent.run("s", "hello", { onBusy }))).toMatchObject({ outcome: "answered" });
      expect(offerCount).toBe(2);
    },
  );
});
