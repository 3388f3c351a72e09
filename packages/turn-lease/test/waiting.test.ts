import { expect, test, vi } from "vitest";
import type { WaitingView } from "../src/options.ts";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { acquireTurnLease, openProcessPresence } from "@turnkeeper/turn-lease";
import { scene, session, tamper, watch } from "./scene.ts";

test("a free session is granted at once, with no word of waiting", async () => {
  const { start, close } = scene();
  const a = start("a");
  const onWaiting = vi.fn();
  const granted = await a.take({ onWaiting });
  expect(granted).toMatchObject({ kind: "granted", revision: 0, waitedMs: 0 });
  expect(granted.lease).toMatchObject({ sessionId: session, fencingToken: 1 });
  expect(granted.lease.grant).toEqual({ sessionId: session, holderId: expect.any(String), fencingToken: 1 });
  expect(onWaiting).not.toHaveBeenCalled();
  await granted.lease.release();
  await close();
});

test("a waiter speaks at once and then at growing intervals, and names the holder", async () => {
  const { host, start, close } = scene();
  const holder = await start("a").take();
  const views: WaitingView[] = [];
  const waiting = watch(start("b").acquire({ onWaiting: (view) => void views.push(view), waitMs: 300_000 }));
  await host.advance(0);
  expect(views).toHaveLength(1);
  await host.advance(200_000);
  expect(views.map((view) => view.elapsedMs)).toEqual([0, 5_000, 15_000, 35_000, 75_000, 135_000, 195_000]);
  for (const view of views)
    expect(view.holder).toMatchObject({ holderId: holder.lease.grant.holderId, instanceId: "a" });
  await holder.lease.release();
  await host.advance(250);
  expect(waiting.value?.kind).toBe("granted");
  if (waiting.value?.kind === "granted") await waiting.value.lease.release();
  await close();
});

test("a notice that throws is reported and does not end the waiting", async () => {
  const { host, start, close } = scene();
  const emitWarning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  await using holder = (await start("a").take()).lease;
  const onWaiting = (): never => {
    throw new Error("no terminal");
  };
  const waiting = watch(start("b").acquire({ onWaiting, waitMs: 1_000 }));
  await host.advance(1_000);
  expect(waiting.value).toMatchObject({ kind: "busy" });
  expect(emitWarning).toHaveBeenCalledTimes(1);
  await holder.release();
  await close();
});

test("while the session is held a waiter writes nothing, and reads four times a second", async () => {
  const { host, start, close } = scene();
  const holder = await start("a").take();
  const b = start("b");
  const waiting = watch(b.acquire());
  await host.advance(10_000);
  expect(b.leases.callCounts).toEqual({ acquire: 1, read: 40, renew: 0, release: 0 });
  await holder.lease.release();
  await host.advance(250);
  if (waiting.value?.kind === "granted") await waiting.value.lease.release();
  expect(b.leases.callCounts.acquire).toBe(2);
  await close();
});

test("waitMs 0 asks once and answers busy with the holder, silently", async () => {
  const { start, close } = scene();
  const holder = await start("a").take();
  const b = start("b");
  const onWaiting = vi.fn();
  const result = await b.acquire({ waitMs: 0, onWaiting });
  expect(result).toMatchObject({ kind: "busy", waitedMs: 0, holder: { instanceId: "a" } });
  expect(b.leases.callCounts).toEqual({ acquire: 1, read: 0, renew: 0, release: 0 });
  expect(onWaiting).not.toHaveBeenCalled();
  await holder.lease.release();
  await close();
});

test("a waiter that has used up waitMs answers busy, closed", async () => {
  const { host, start, close } = scene();
  const holder = await start("a").take();
  const b = start("b");
  const waiting = watch(b.acquire({ waitMs: 1_100 }));
  await host.advance(1_099);
  expect(waiting.value).toBeUndefined();
  await host.advance(1);
  expect(waiting.value).toMatchObject({ kind: "busy", waitedMs: 1_100, holder: { instanceId: "a" } });
  await holder.lease.release();
  await close();
});

test("a session that comes free at the last look before the deadline is granted", async () => {
  const { host, start, close } = scene();
  const holder = await start("a").take();
  const b = start("b", { wake: async () => "unknown" });
  const waiting = watch(b.acquire({ waitMs: 1_000 }));
  await host.advance(990);
  await holder.lease.release();
  await host.advance(10);
  expect(waiting.value).toMatchObject({ kind: "granted", waitedMs: 1_000 });
  if (waiting.value?.kind === "granted") await waiting.value.lease.release();
  await close();
});

test("a busy store is not a holder: it is asked again, without a notice, and its time does not count", async () => {
  const { host, start, close } = scene();
  const b = start("b");
  const onWaiting = vi.fn();
  b.leases.fail("acquire", "STORE_BUSY");
  const waiting = watch(b.acquire({ waitMs: 0, onWaiting }));
  await host.advance(20_000);
  expect(waiting.value).toBeUndefined();
  expect(b.leases.callCounts.acquire).toBeGreaterThan(100);
  b.leases.fail("acquire", undefined);
  await host.advance(50);
  expect(waiting.value).toMatchObject({ kind: "granted", waitedMs: 0 });
  expect(onWaiting).not.toHaveBeenCalled();
  if (waiting.value?.kind === "granted") await waiting.value.lease.release();
  await close();
});

test("the time a store is busy between two refusals is not waiting", async () => {
  const { host, start, close } = scene();
  const first = await start("a").take();
  const b = start("b", { wake: async () => "unknown" });
  const waiting = watch(b.acquire({ waitMs: 2_000 }));
  await host.advance(1_000);
  b.leases.fail("acquire", "STORE_BUSY");
  await first.lease.release();
  await host.advance(5_000);
  const second = await start("c").take();
  b.leases.fail("acquire", undefined);
  await host.advance(500);
  expect(waiting.value).toBeUndefined();
  await host.advance(500);
  expect(waiting.value).toMatchObject({ kind: "busy", holder: { instanceId: "c" } });
  await second.lease.release();
  await close();
});

test("a store that stays busy for a minute is an error, with the store's code", async () => {
  const { host, start, close } = scene();
  const b = start("b");
  b.leases.fail("acquire", "STORE_BUSY");
  const waiting = watch(b.acquire());
  await host.advance(61_000);
  expect(waiting.error).toMatchObject({ code: "STORE_BUSY" });
  await close();
});

test("a look that finds the store busy is no answer either way", async () => {
  const { host, start, close } = scene();
  const holder = await start("a").take();
  const b = start("b");
  const waiting = watch(b.acquire({ waitMs: 5_000 }));
  await host.advance(0);
  b.leases.fail("read", "STORE_BUSY");
  await host.advance(2_000);
  expect(waiting.value).toBeUndefined();
  b.leases.fail("read", undefined);
  await holder.lease.release();
  await host.advance(250);
  expect(waiting.value?.kind).toBe("granted");
  if (waiting.value?.kind === "granted") await waiting.value.lease.release();
  await close();
});

test("any other error of the store is thrown, at the first question and at a look", async () => {
  const { host, start, close } = scene();
  const b = start("b");
  b.leases.fail("acquire", "STORE_CORRUPT");
  await expect(b.acquire()).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  b.leases.fail("acquire", undefined);
  const holder = await start("a").take();
  const waiting = watch(b.acquire());
  await host.advance(0);
  b.leases.fail("read", "STORE_FULL");
  await host.advance(250);
  expect(waiting.error).toMatchObject({ code: "STORE_FULL" });
  await holder.lease.release();
  await close();
});

test("a question whose outcome is unknown is asked again under the same holder, and the grant is found", async () => {
  const { host, store, start, close } = scene();
  const a = start("a");
  a.leases.fail("acquire", "STORE_IO", "afterwards");
  const asking = watch(a.acquire());
  await host.advance(0);
  a.leases.fail("acquire", undefined);
  await host.advance(25);
  expect(asking.value?.kind).toBe("granted");
  expect(new Set(a.leases.acquires.map((request) => request.holder.holderId)).size).toBe(1);
  expect((await store.leases.read(session))?.fencingToken).toBe(1);
  if (asking.value?.kind === "granted") await asking.value.lease.release();
  await close();
});

test("a store that never tells the outcome is an error, and what it granted is leaked, not lost", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  a.leases.fail("acquire", "STORE_IO", "afterwards");
  const asking = watch(a.acquire());
  await host.advance(1_000);
  expect(asking.error).toMatchObject({ code: "STORE_IO" });
  const next = watch(start("b").acquire());
  await host.advance(250);
  expect(next.value?.kind).toBe("granted");
  if (next.value?.kind === "granted") await next.value.lease.release();
  await close();
});

test("belief counts from the question that was granted, not from those that were refused before", async () => {
  const { host, start, close } = scene();
  const holder = (await start("b").take()).lease;
  const a = start("a");
  const asking = watch(a.acquire({ waitMs: 3_600_000 }));
  await host.advance(260_000);
  await holder.release();
  await host.advance(1_000);
  if (asking.value?.kind !== "granted") throw new Error("not granted");
  const { lease } = asking.value;
  a.leases.fail("renew", "STORE_BUSY");
  await host.advance(200_000);
  expect(lease.lost.aborted).toBe(false);
  await lease.confirm();
  await lease.release();
  await close();
});

test.each([
  ["gone", "granted", 3],
  ["slow to claim", undefined, 4],
] as const)(
  "rule 7.10: a head in this very process that is %s does not make its waiter spin, which listens there too",
  async (fate, kind, acquiresMax) => {
    const { host, store, close } = scene();
    const presence = await openProcessPresence({ host });
    const scheduler = createPeriodicScheduler({ host });
    const head = { ...presence.identity, runnerId: "head" };
    const own = { ...presence.identity, runnerId: "own" };
    using _own = presence.register("own");
    const registration = fate === "gone" ? undefined : presence.register("head");
    await store.inbox.offer({ sessionId: session, inputId: "1", text: "first", onBusy: "wait", runner: head });
    await store.inbox.offer({ sessionId: session, inputId: "2", text: "second", onBusy: "wait", runner: own });
    const leases = tamper(store.leases);
    const stop = new AbortController();
    const waiting = watch(
      acquireTurnLease({ store: leases, inbox: store.inbox, scheduler, host, presence }, session, {
        begin: { turnId: "t", runnerId: "own" },
        signal: stop.signal,
      }),
    );
    await host.advance(400);
    expect(leases.callCounts.acquire).toBeLessThanOrEqual(acquiresMax);
    expect(waiting.value?.kind).toBe(kind);
    stop.abort();
    await host.advance(10);
    if (waiting.value?.kind === "granted") await waiting.value.lease.release();
    registration?.[Symbol.dispose]();
    await presence.close();
    await scheduler.close();
    await close();
  },
);
