import { acquireTurnLease } from "@turnkeeper/turn-lease";
import { expect, test } from "vitest";
import { scene, session, usurp, watch } from "./scene.ts";

test("release frees the session, answers what is pending, and may be repeated", async () => {
  const { store, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  const first = await lease.release();
  expect(first).toEqual({ kind: "released", pendingCount: 0 });
  expect(await lease.release()).toBe(first);
  expect(a.leases.callCounts.release).toBe(1);
  expect(await store.leases.read(session)).toBeUndefined();
  await lease[Symbol.asyncDispose]();
  await close();
});

test("release with a closing write ends the turn and frees the lease in that one transaction", async () => {
  const { store, start, close } = scene();
  const a = start("a");
  await a.offer("hello");
  const { lease } = await a.take(a.begin("turn-1"));
  const ended = await lease.release(() =>
    store.turns.end({ grant: lease.grant, turnId: "turn-1", outcome: "answered", release: true }),
  );
  expect(ended).toMatchObject({ kind: "ended", revision: expect.any(Number), pendingCount: 0 });
  expect(a.leases.callCounts.release).toBe(0);
  expect(await store.leases.read(session)).toBeUndefined();
  await close();
});

test("while the closing write runs the holder still answers active, afterwards no more", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const watcher = start("b").process;
  const { lease } = await a.take();
  const parked = a.leases.park("release");
  const releasing = lease.release();
  await parked.arrived;
  expect(await watcher.probe(a.process.identity, lease.grant.holderId)).toBe("active");
  parked.resume();
  await releasing;
  expect(await watcher.probe(a.process.identity, lease.grant.holderId)).toBe("unknown-here");
  await host.settle();
  await close();
});

test("rule 7.12: a holder registers before the store is asked, and is forgotten after a refusal", async () => {
  const { start, close } = scene();
  const a = start("a");
  const watcher = start("watcher").process;
  const parked = a.leases.park("acquire", "answer");
  const asking = a.take();
  await parked.arrived;
  const [request] = a.leases.acquires;
  // The grant stands, its answer is on the way.
  expect(await watcher.probe(a.process.identity, request?.holder.holderId ?? "")).toBe("active");
  parked.resume();
  const { lease } = await asking;
  const b = start("b");
  await b.acquire({ waitMs: 0 });
  const [refused] = b.leases.acquires;
  expect(await watcher.probe(b.process.identity, refused?.holder.holderId ?? "")).toBe("unknown-here");
  await lease.release();
  await close();
});

test("the release of a lost lease writes nothing, however it is asked for", async () => {
  const { host, store, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  await usurp(store, lease.grant);
  await host.advance(61_000);
  let wroteCount = 0;
  const answer = await lease.release(async () => {
    wroteCount++;
    return { kind: "ended", pendingCount: 0 };
  });
  expect([answer, wroteCount]).toEqual([{ kind: "lost" }, 0]);
  await close();
});

test("a release that the store refuses may be tried again, and the holder answers active until then", async () => {
  const { store, start, close } = scene();
  const a = start("a");
  const watcher = start("b").process;
  const { lease } = await a.take();
  a.leases.fail("release", "STORE_BUSY");
  await expect(lease.release()).rejects.toMatchObject({ code: "STORE_BUSY" });
  expect(await watcher.probe(a.process.identity, lease.grant.holderId)).toBe("active");
  a.leases.fail("release", undefined);
  expect(await lease.release()).toMatchObject({ kind: "released" });
  expect(await store.leases.read(session)).toBeUndefined();
  await close();
});

test("a release that nobody tries again lets go when its TTL is over, and others find it leaked", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const watcher = start("b").process;
  const { lease } = await a.take();
  a.leases.fail("release", "STORE_BUSY");
  await expect(lease.release()).rejects.toMatchObject({ code: "STORE_BUSY" });
  await host.advance(300_000);
  expect(await watcher.probe(a.process.identity, lease.grant.holderId)).toBe("unknown-here");
  await close();
});

test("dispose lets go even where the store refuses: the lease is leaked, and reclaimed within two looks", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  a.leases.fail("release", "STORE_IO");
  await expect(lease[Symbol.asyncDispose]()).rejects.toMatchObject({ code: "STORE_IO" });
  expect(host.pendingTimerCount()).toBe(0);
  const next = watch(start("b").acquire());
  await host.advance(250);
  expect(next.value?.kind).toBe("granted");
  if (next.value?.kind === "granted") await next.value.lease.release();
  await close();
});

test("rule 7.22: a held lease keeps the process alive with a timer of its own, until it is released", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const kept: boolean[] = [];
  const after = host.timers.after;
  const watching = {
    ...host,
    timers: {
      ...host.timers,
      after: (ms: number, fn: () => void, options: { keepAlive?: boolean } = {}) => {
        kept.push(options.keepAlive !== false);
        return after(ms, fn);
      },
    },
  };
  const b = { ...a.deps, host: watching };

  const result = await acquireTurnLease(b, session);
  expect(kept.filter(Boolean)).toHaveLength(1);
  if (result.kind === "granted") await result.lease.release();
  await close();
});
