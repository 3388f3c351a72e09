import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { holderIdOf, scene, session, watch } from "./scene.ts";

test("a signal that has aborted already asks nothing of the store", async () => {
  const { start, close } = scene();
  const a = start("a");
  expect(await a.acquire({ signal: AbortSignal.abort() })).toEqual({ kind: "aborted", waitedMs: 0 });
  expect(a.leases.callCounts.acquire).toBe(0);
  await close();
});

test("an abort ends the waiting at once and leaves no timer, listener or registration", async () => {
  const { host, start, close } = scene();
  const holder = await start("a").take();
  const b = start("b");
  const abort = new AbortController();
  const waiting = watch(b.acquire({ signal: abort.signal }));
  await host.advance(1_100);
  abort.abort();
  await host.settle();
  expect(waiting.value).toEqual({ kind: "aborted", waitedMs: 1_100 });
  const [asked] = b.leases.acquires;
  const c = start("c").process;
  expect(await c.probe(b.process.identity, asked?.holder.holderId ?? "")).toBe("unknown-here");
  expect(await c.wake(b.process.identity, session, asked?.holder.holderId)).toBe("unknown-here");
  await holder.lease.release();
  await close();
});

test("a signal that outlives the waiting is let go with the grant", async () => {
  const { start, close } = scene();
  const { signal } = new AbortController();
  const { lease } = await start("a").take({ signal });
  expect(getEventListeners(signal, "abort")).toEqual([]);
  await lease.release();
  await close();
});

test("a grant that arrives after the abort is released", async () => {
  const { host, store, start, close } = scene();
  const a = start("a");
  const abort = new AbortController();
  const parked = a.leases.park("acquire");
  const asking = watch(a.acquire({ signal: abort.signal }));
  await parked.arrived;
  abort.abort();
  await host.settle();
  expect(asking.value).toEqual({ kind: "aborted", waitedMs: 0 });
  parked.resume();
  await host.settle();
  expect(a.leases.callCounts.release).toBe(1);
  expect(await store.leases.read(session)).toBeUndefined();
  await close();
});

test("an abort while a turn may be beginning waits for the answer: a turn that began has to be ended by its owner", async () => {
  const { host, store, start, close } = scene();
  const a = start("a");
  await a.offer("hello");
  const abort = new AbortController();
  const parked = a.leases.park("acquire");
  const asking = watch(a.acquire({ signal: abort.signal, ...a.begin("turn-1") }));
  await parked.arrived;
  abort.abort();
  await host.settle();
  expect(asking.value).toBeUndefined();
  parked.resume();
  await host.settle();
  expect(asking.value).toMatchObject({ kind: "granted", input: { inputId: "hello", turnId: "turn-1" } });
  expect(await holderIdOf(store)).toBeDefined();
  if (asking.value?.kind === "granted") {
    const { lease } = asking.value;
    await lease.release(() =>
      store.turns.end({ grant: lease.grant, turnId: "turn-1", outcome: "interrupted", release: true }),
    );
  }
  await close();
});

test("an abort while a turn may be beginning is an abort when the answer is a refusal", async () => {
  const { host, start, close } = scene();
  const holder = await start("a").take();
  const b = start("b");
  await b.offer("hello");
  const abort = new AbortController();
  const parked = b.leases.park("acquire");
  const asking = watch(b.acquire({ signal: abort.signal, ...b.begin("turn-1") }));
  await parked.arrived;
  abort.abort();
  parked.resume();
  await host.settle();
  expect(asking.value?.kind).toBe("aborted");
  await holder.lease.release();
  await close();
});

test("with the outcome of a beginning turn unknown, an abort finds out first", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  await a.offer("hello");
  const abort = new AbortController();
  a.leases.fail("acquire", "STORE_IO", "afterwards");
  const asking = watch(a.acquire({ signal: abort.signal, ...a.begin("turn-1") }));
  await host.settle();
  a.leases.fail("acquire", undefined);
  abort.abort();
  await host.advance(25);
  expect(asking.value).toMatchObject({ kind: "granted", input: { inputId: "hello" } });
  if (asking.value?.kind === "granted") await asking.value.lease.release();
  await close();
});

test("an abort while the store is busy settles at once", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  await a.offer("hello");
  a.leases.fail("acquire", "STORE_BUSY");
  const abort = new AbortController();
  const asking = watch(a.acquire({ signal: abort.signal, ...a.begin("turn-1") }));
  await host.advance(1_000);
  abort.abort();
  await host.settle();
  expect(asking.value?.kind).toBe("aborted");
  await close();
});
