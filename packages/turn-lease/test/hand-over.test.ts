import { CodedError } from "@turnkeeper/kernel";
import { expect, test } from "vitest";
import { scene, session, watch } from "./scene.ts";
import type { Actor, Scene } from "./scene.ts";

interface Waiter {
  readonly actor: Actor;
  readonly result: ReturnType<typeof watch<Awaited<ReturnType<Actor["acquire"]>>>>;
}

/** Actors queue one after the other, each with an input of its own. */
async function queue(one: Scene, names: readonly string[], see: Parameters<Scene["start"]>[1] = {}): Promise<Waiter[]> {
  const waiters: Waiter[] = [];
  for (const name of names) {
    const actor = one.start(name, see);
    await actor.offer(`input-${name}`);
    waiters.push({ actor, result: watch(actor.acquire(actor.begin(`turn-${name}`))) });
    await one.host.advance(10);
  }
  return waiters;
}

async function endTurn(one: Scene, name: string, result: Waiter["result"]["value"]): Promise<unknown> {
  if (result?.kind !== "granted") throw new Error(`${name} has no turn`);
  const { lease } = result;
  return await lease.release(() =>
    one.store.turns.end({ grant: lease.grant, turnId: `turn-${name}`, outcome: "answered", release: true }),
  );
}

test("the releaser wakes the head of the queue, which starts at once: no poll passes", async () => {
  const one = scene();
  const [a, b] = await queue(one, ["a", "b"]);
  expect(a?.result.value).toMatchObject({ kind: "granted", input: { inputId: "input-a" } });
  await one.host.advance(100);
  const releasedAtMs = one.host.clock.monotonicMs();
  await endTurn(one, "a", a?.result.value);
  await one.host.settle();
  expect(b?.result.value).toMatchObject({ kind: "granted", input: { inputId: "input-b" } });
  expect(one.host.clock.monotonicMs()).toBe(releasedAtMs);
  await endTurn(one, "b", b?.result.value);
  await one.close();
});

test("waiters are served first come, first served, and nobody is overtaken", async () => {
  const one = scene();
  const names = ["a", "b", "c", "d", "e", "f"];
  const waiters = await queue(one, names);
  const served: string[] = [];
  for (const [index, name] of names.entries()) {
    await one.host.settle();
    served.push(...names.filter((other) => !served.includes(other) && waiters[names.indexOf(other)]?.result.value));
    await endTurn(one, name, waiters[index]?.result.value);
  }
  expect(served).toEqual(names);
  await one.close();
});

test("a wake-up that is lost is covered by the waiter's own look", async () => {
  const one = scene();
  const [a, b] = await queue(one, ["a", "b"], { wake: async () => "unknown" });
  await endTurn(one, "a", a?.result.value);
  await one.host.settle();
  expect(b?.result.value).toBeUndefined();
  await one.host.advance(250);
  expect(b?.result.value?.kind).toBe("granted");
  await endTurn(one, "b", b?.result.value);
  await one.close();
});

test("a wake-up between a look and the sleep is not lost", async () => {
  const one = scene();
  const [a] = await queue(one, ["a"]);
  const b = one.start("b");
  await b.offer("input-b");
  const waiting = watch(b.acquire(b.begin("turn-b")));
  await one.host.advance(240);
  const parked = b.leases.park("read", "answer");
  await one.host.advance(10);
  await parked.arrived;
  // The look has read `held`; the release and its wake-up come before the waiter sleeps again.
  await endTurn(one, "a", a?.result.value);
  parked.resume();
  await one.host.settle();
  expect(waiting.value?.kind).toBe("granted");
  await endTurn(one, "b", waiting.value);
  await one.close();
});

test("a dead head is taken out of the queue by the releaser, who wakes the next", async () => {
  const one = scene();
  const [a, b, c] = await queue(one, ["a", "b", "c"]);
  b?.actor.kill();
  const handOver = await endTurn(one, "a", a?.result.value);
  // The dead waiter's input is an orphan now, older than c's: c runs it first, then its own.
  expect(handOver).toMatchObject({ kind: "ended", pendingCount: 2, head: { inputId: "input-c" } });
  await one.host.settle();
  expect(c?.result.value).toMatchObject({ kind: "granted", input: { inputId: "input-b" } });
  await one.switchOff();
});

test("rule 7.11: with the last waiter dead the answer names no head: only orphans are pending, the releaser competes again", async () => {
  const one = scene();
  const [a, b] = await queue(one, ["a", "b"]);
  b?.actor.kill();
  const handOver = await endTurn(one, "a", a?.result.value);
  expect(handOver).toMatchObject({ kind: "ended", pendingCount: 1 });
  expect(handOver).not.toHaveProperty("head");
  const again = await a?.actor.acquire({ ...a.actor.begin("turn-a2"), waitMs: 0 });
  expect(again).toMatchObject({ kind: "granted", input: { inputId: "input-b" } });
  await one.switchOff();
});

test("a runner that its living process knows no more is taken out of the queue as well", async () => {
  const one = scene();
  const [a] = await queue(one, ["a"]);
  const gone = { ...one.start("b").process.identity, runnerId: "closed dispatcher" };
  await one.store.inbox.offer({ sessionId: session, inputId: "left behind", text: "x", onBusy: "wait", runner: gone });
  const handOver = await endTurn(one, "a", a?.result.value);
  expect(handOver).toEqual(expect.not.objectContaining({ head: expect.anything() }));
  expect(handOver).toMatchObject({ pendingCount: 1 });
  await one.close();
});

test("rule 7.10: a head that stands still keeps its place for the claim period, is passed over, and keeps its input", async () => {
  const one = scene();
  const [a, b, c] = await queue(one, ["a", "b", "c"]);
  b?.actor.process.stop();
  await b?.actor.scheduler.close();
  // Its acquire cannot run either: a stopped process asks nothing.
  b?.actor.leases.park("acquire");
  await endTurn(one, "a", a?.result.value);
  await one.host.advance(450);
  expect(c?.result.value).toBeUndefined();
  await one.host.advance(600);
  expect(c?.result.value).toMatchObject({ kind: "granted", input: { inputId: "input-c" } });
  expect(await one.store.inbox.read(session, "input-b")).toMatchObject({
    state: "pending",
    runner: { runnerId: "runner-b" },
  });
  await one.switchOff();
});

test("rule 7.10: a newcomer does not take a free session past a living waiter, but wakes it", async () => {
  const one = scene();
  const b = one.start("b");
  await b.offer("input-b");
  const newcomer = one.start("c");
  await newcomer.offer("input-c");
  const early = watch(newcomer.acquire(newcomer.begin("turn-c")));
  await one.host.advance(100);
  expect(early.value).toBeUndefined();
  const first = await b.take(b.begin("turn-b"));
  expect(first.input?.inputId).toBe("input-b");
  await endTurn(one, "b", first);
  await one.host.settle();
  expect(early.value).toMatchObject({ kind: "granted", input: { inputId: "input-c" } });
  await endTurn(one, "c", early.value);
  await one.close();
});

/** c, with an input behind that of b, whose process is dead. */
async function newcomerBehindTheDead(one: Scene): Promise<Actor> {
  const b = one.start("b");
  await b.offer("input-b");
  b.kill();
  const c = one.start("c");
  await c.offer("input-c");
  return c;
}

test("a newcomer behind a dead waiter abandons it and goes on at once", async () => {
  const one = scene();
  const c = await newcomerBehindTheDead(one);
  const granted = await c.take({ ...c.begin("turn-c"), waitMs: 0 });
  expect(granted).toMatchObject({ waitedMs: 0, input: { inputId: "input-b" } });
  await one.switchOff();
});

test.each(["STORE_IO", "STORE_BUSY"])(
  "a newcomer behind a dead waiter does not fail for %s of passing it over: the claim period does it",
  async (code) => {
    const one = scene();
    const c = await newcomerBehindTheDead(one);
    if (c.deps.inbox) c.deps.inbox.abandon = () => Promise.reject(new CodedError(code, "the answer was lost"));
    const acquired = watch(c.acquire(c.begin("turn-c")));
    await one.host.advance(1_500);
    expect(acquired).toMatchObject({ value: { kind: "granted", input: { inputId: "input-c" } } });
    await endTurn(one, "c", acquired.value);
    await one.switchOff();
  },
);

test("busy behind a waiter names that waiter's runner", async () => {
  const one = scene();
  const b = one.start("b");
  await b.offer("input-b");
  const c = one.start("c");
  await c.offer("input-c");
  expect(await c.acquire({ ...c.begin("turn-c"), waitMs: 0 })).toMatchObject({
    kind: "busy",
    holder: { runnerId: "runner-b" },
  });
});

test("nothing to run is an answer of its own, and takes nothing", async () => {
  const one = scene();
  const a = one.start("a");
  expect(await a.acquire(a.begin("turn-a"))).toEqual({ kind: "nothing-to-run", waitedMs: 0 });
  expect(await one.store.leases.read(session)).toBeUndefined();
  await one.close();
});

test("a store that fails during the hand-over does not make a committed release fail", async () => {
  const one = scene();
  const [a, b] = await queue(one, ["a", "b"]);
  b?.actor.kill();
  if (a?.actor.deps.inbox) a.actor.deps.inbox.abandon = () => Promise.reject(new Error("disk"));
  expect(await endTurn(one, "a", a?.result.value)).toMatchObject({ kind: "ended", pendingCount: 1 });
});
