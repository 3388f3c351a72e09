import type { StateStore } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
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
  /** Runs, or waits to run, the input "pay". */
  readonly owner: Agent;
  readonly owned: Turn;
  /** Calls with the same input id, and follows. */
  readonly follower: Agent;
  readonly following: Turn;
}

async function followed(options: { readonly waitMs?: number; readonly store?: StateStore } = {}): Promise<Scene> {
  const { agent: owner } = await bench.agent([{ silentAfter: "Paying" }]);
  const { agent: follower } = await bench.agent([{ text: "run by the follower" }], {}, [], undefined, options.store);
  const owned = owner.run("s", "pay", { inputId: "pay" });
  await bench.host.advance(10);
  const { waitMs } = options;
  const following = follower.run("s", "pay", { inputId: "pay", ...(waitMs === undefined ? {} : { waitMs }) });
  await bench.host.advance(10);
  return { owner, owned, follower, following };
}

/** The same, with somebody else's turn in the way of both. */
async function followedInQueue(): Promise<Scene & { readonly running: Turn }> {
  const { agent } = await bench.agent([{ silentAfter: "…" }]);
  const running = agent.run("s", "somebody else's");
  await bench.host.advance(10);
  return { ...(await followed()), running };
}

async function runningInputs(): Promise<readonly unknown[]> {
  const records = await bench.store.sessions.records("s");
  return records?.inputs.filter((input) => input.state === "taken").map((input) => input.text) ?? [];
}

describe("INT-2: a stop of a call that follows another's input", () => {
  it.each([true, false])("that is pending ends the following alone (hard: %s)", async (hard) => {
    const { owned, following, running } = await followedInQueue();
    following.stop({ hard });
    expect(await bench.finished(following)).toMatchObject({ outcome: "queued", reason: "user-stop" });
    await bench.host.advance(1000);
    expect(await runningInputs()).toEqual(["somebody else's"]);
    expect((await bench.store.turns.running("s"))[0]?.turn.stop).toBeUndefined();
    running.stop();
    await bench.finished(running);
    await bench.host.advance(1000);
    expect(await runningInputs()).toEqual(["pay"]);
    owned.stop();
    expect(await bench.finished(owned)).toMatchObject({ outcome: "interrupted" });
  });

  it("that a turn has stops that turn, and both are told so", async () => {
    const { owned, following } = await followed();
    following.stop({ by: "the follower" });
    expect(await bench.finished(following)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(await bench.finished(owned)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
  });

  it("that a turn has never stops the next turn, though the first one ends while the stop is on its way", async () => {
    const { owned, following } = await followed();
    const next = (await bench.agent([{ silentAfter: "…" }])).agent.run("s", "next");
    await bench.host.advance(10);
    const { turns } = bench.store;
    const requestStop = turns.requestStop.bind(turns);
    turns.requestStop = async (...request) => {
      turns.requestStop = requestStop;
      owned.stop();
      await new Promise<void>((resolve) => void bench.host.timers.after(2000, resolve));
      return await requestStop(...request);
    };
    following.stop({ hard: true });
    expect(await bench.finished(following)).toMatchObject({ outcome: "interrupted" });
    await bench.host.advance(3000);
    expect(await runningInputs()).toEqual(["next"]);
    expect((await bench.store.turns.running("s"))[0]?.turn.stop).toBeUndefined();
    next.stop();
    await bench.finished(next);
  });

  it.each([
    [true, "cancelled", "settled"],
    [false, "queued", "pending"],
  ] as const)("whose runner has left cancels the input when hard alone (hard: %s)", async (hard, outcome, state) => {
    const { owner, following, running } = await followedInQueue();
    const closing = owner.close();
    await bench.host.settle();
    following.stop({ hard });
    expect(await bench.finished(following)).toMatchObject({ outcome, reason: "user-stop" });
    expect(await bench.store.inbox.read("s", "pay")).toMatchObject({ state });
    await closing;
    running.stop();
    await bench.finished(running);
  });
});

describe("a call that follows a turn whose process does not answer", () => {
  /** A turn of a process of which nothing may be concluded: it exists, and cannot be asked. */
  async function followedInSilence(): Promise<Turn> {
    const holder = { instanceId: "stopped", host: "here", bootId: bench.host.clock.bootId, pid: process.pid };
    const runner = { ...holder, runnerId: "stopped-runner" };
    await bench.store.inbox.offer({ sessionId: "s", inputId: "pay", text: "pay", onBusy: "wait", runner });
    const begin = { turnId: "silent-turn", runnerId: "stopped-runner" };
    await bench.store.leases.acquire({
      sessionId: "s",
      holder: { ...holder, holderId: "silent" },
      ttlMs: 300_000,
      begin,
    });
    const { agent } = await bench.agent([]);
    const following = agent.run("s", "pay", { inputId: "pay" });
    await bench.host.advance(10);
    return following;
  }

  it("goes on through a soft stop, and is let go of by a hard one, which stays asked for", async () => {
    const following = await followedInSilence();
    let outcome: string | undefined;
    void following.result.then((finished) => (outcome = finished.outcome));
    following.stop();
    await bench.host.advance(10_000);
    expect(outcome).toBeUndefined();
    const beforeMs = bench.host.clock.monotonicMs();
    following.stop({ hard: true });
    expect(await bench.finished(following)).toMatchObject({
      outcome: "queued",
      reason: "user-stop",
      detail: expect.stringContaining(`pid ${process.pid} on here`),
    });
    expect(bench.host.clock.monotonicMs() - beforeMs).toBeLessThan(3000);
    expect((await bench.store.turns.running("s"))[0]?.turn).toMatchObject({
      turnId: "silent-turn",
      stop: { hard: true, reason: "user-stop" },
    });
  });

  it("control: a process that answers is waited for, though its turn takes its time over a hard stop", async () => {
    const deaf = defineTool({
      name: "deaf",
      description: "Ignores every stop.",
      input: z.object({}),
      execute: () => new Promise<string>(() => {}),
    });
    const { agent: owner } = await bench.agent([{ calls: [{ name: "deaf", input: {} }] }], {}, [deaf]);
    const { agent } = await bench.agent([]);
    const owned = owner.run("s", "pay", { inputId: "pay" });
    await bench.host.advance(10);
    // The holder's loop is busy elsewhere: the stop takes longer than the grace to be seen.
    const { turns } = bench.store;
    const stopRequest = turns.stopRequest.bind(turns);
    turns.stopRequest = async () => undefined;
    const following = agent.run("s", "pay", { inputId: "pay" });
    await bench.host.advance(10);
    following.stop({ hard: true });
    await bench.host.advance(5000);
    turns.stopRequest = stopRequest;
    expect(await bench.finished(following)).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
    expect(await bench.finished(owned)).toMatchObject({ outcome: "interrupted" });
  });
});

describe("a call that follows another's input", () => {
  it("says at once that it waits and for whom, and gives up after its patience with nothing changed", async () => {
    const { owned, following } = await followed({ waitMs: 5000 });
    await bench.host.advance(6000);
    expect(await bench.finished(following)).toMatchObject({ outcome: "busy", reason: "session_busy" });
    const waiting = (await bench.eventsOf(following)).filter((event) => event.type === "turn.waiting");
    expect(waiting[0]?.holder?.pid).toBe(process.pid);
    expect(waiting.map((event) => Math.round(event.elapsedMs / 1000))).toEqual([0, 1, 3]);
    expect(await bench.store.inbox.read("s", "pay")).toMatchObject({ state: "taken" });
    expect((await bench.store.turns.running("s"))[0]?.turn.stop).toBeUndefined();
    owned.stop();
    await bench.finished(owned);
  });

  it("gives up in the queue too, and the input stays its runner's", async () => {
    const { owned, running } = await followedInQueue();
    const { agent } = await bench.agent([]);
    const hasty = agent.run("s", "pay", { inputId: "pay", waitMs: 1000 });
    await bench.host.advance(1500);
    expect(await bench.finished(hasty)).toMatchObject({ outcome: "busy" });
    expect(await bench.store.inbox.read("s", "pay")).toMatchObject({ state: "pending" });
    running.stop();
    await bench.finished(running);
    await bench.host.advance(1000);
    owned.stop();
    expect(await bench.finished(owned)).toMatchObject({ outcome: "interrupted" });
  });

  it("lets go at once when its agent is closed, and the turn runs on", async () => {
    const { owned, follower, following } = await followed();
    const beforeMs = bench.host.clock.monotonicMs();
    const closing = follower.close();
    expect(await bench.finished(following)).toMatchObject({ outcome: "queued", reason: "shutdown" });
    expect(bench.host.clock.monotonicMs() - beforeMs).toBeLessThan(20);
    await closing;
    expect(await runningInputs()).toEqual(["pay"]);
    owned.stop();
    expect(await bench.finished(owned)).toMatchObject({ outcome: "interrupted" });
  });

  it("asks the store at most four times a second", async () => {
    let readCount = 0;
    const counted = <Port extends object>(port: Port): Port =>
      new Proxy(port, {
        get(target, name) {
          const member: unknown = Reflect.get(target, name, target);
          if (typeof member !== "function") return member;
          return (...args: unknown[]): unknown => {
            readCount++;
            return Reflect.apply(member, target, args);
          };
        },
      });
    const { inbox, turns, leases, transcript } = bench.store;
    const ports = { inbox: counted(inbox), turns: counted(turns), leases: counted(leases) };
    const { owned } = await followed({
      store: { ...bench.store, transcript, ...ports, close: () => bench.store.close() },
    });
    readCount = 0;
    await bench.host.advance(20_000);
    expect(readCount).toBeGreaterThan(20);
    expect(readCount).toBeLessThanOrEqual(80);
    owned.stop();
    await bench.finished(owned);
  });

  it("runs the input itself when its runner leaves it", async () => {
    const { owner, following, running } = await followedInQueue();
    const closing = owner.close();
    await bench.host.advance(1000);
    await closing;
    running.stop();
    expect(await bench.finished(following)).toMatchObject({ outcome: "answered", text: "run by the follower" });
  });
});

it("a follower that is woken looks at once", async () => {
  const { owned, following } = await followed();
  owned.stop();
  expect(await bench.finished(owned)).toMatchObject({ outcome: "interrupted" });
  let hasEnded = false;
  void following.result.then(() => (hasEnded = true));
  await bench.host.settle();
  expect(hasEnded).toBe(false);
  const presence = await openProcessPresence({ host: bench.host });
  await presence.wake(presence.identity, "s");
  await bench.host.settle();
  expect(hasEnded).toBe(true);
  await presence.close();
});
