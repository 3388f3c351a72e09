import type { ProcessIdentity } from "@turnkeeper/state-store";
import { expect, test } from "vitest";
import type { Liveness } from "../src/presence.ts";
import { scene, session, watch } from "./scene.ts";
import type { Scene } from "./scene.ts";

type Probe = (target: ProcessIdentity, id: string) => Promise<Liveness>;

interface Seen {
  /** How long the next one waited for a holder that was killed, in milliseconds of its TTL of 300 s. */
  readonly afterKillMs: number;
  /** Whether a holder that only stood still lost its lease before it expired. */
  readonly stolenFromStopped: boolean;
}

/** A holder is killed and another comes; in a second scene a holder is stopped and another waits until just before expiry. */
async function killAndStop(probe: (actual: Probe) => Probe): Promise<Seen> {
  const watcherOf = (one: Scene) => {
    // The virtual processes answer the truth; the guard, or what stands in its place, makes a verdict of it.
    const truth = one.start("watcher").process;
    return one.start("b", { probe: probe((target, id) => truth.probe(target, id)) });
  };
  const first = scene();
  const victim = first.start("a");
  await victim.take();
  victim.kill();
  const waiting = watch(watcherOf(first).acquire());
  const killedAtMs = first.host.clock.monotonicMs();
  while (waiting.value === undefined) await first.host.advance(250);
  const afterKillMs = first.host.clock.monotonicMs() - killedAtMs;
  await first.switchOff();

  const second = scene();
  const stopped = second.start("a");
  await stopped.take();
  await stopped.scheduler.close();
  stopped.process.stop();
  const contender = watch(watcherOf(second).acquire());
  await second.host.advance(299_700);
  await second.switchOff();
  return { afterKillMs, stolenFromStopped: contender.value?.kind === "granted" };
}

test("LEASE-5: a holder that is provably dead is reclaimed within one poll, one that may live never before expiry", async () => {
  const seen = await killAndStop((actual) => actual);
  expect(seen.afterKillMs).toBeLessThanOrEqual(250);
  expect(seen.stolenFromStopped).toBe(false);
});

test("LEASE-5 control: without the probe it fails, a dead holder blocks the session until it expires", async () => {
  const seen = await killAndStop(() => async () => "unknown");
  expect(seen.afterKillMs).toBeGreaterThan(60_000);
});

test("LEASE-5 control: without telling silence from death it fails, a holder that was only stopped is robbed", async () => {
  const seen = await killAndStop((actual) => async (target, id) => {
    const liveness = await actual(target, id);
    return liveness === "unknown" ? "dead" : liveness;
  });
  expect(seen.stolenFromStopped).toBe(true);
});

test("rule 7.13: a dead holder is taken at the first question, even with waitMs 0, and its turn is settled by the grant", async () => {
  const { store, start } = scene();
  const a = start("a");
  await a.offer("hello");
  await a.take(a.begin("turn-1"));
  await a.scheduler.close();
  a.kill();
  const b = start("b");
  await b.offer("next");
  const granted = await b.take({ waitMs: 0, ...b.begin("turn-2") });
  expect(granted.waitedMs).toBe(0);
  expect(granted.lease.fencingToken).toBe(2);
  expect(granted.predecessors).toMatchObject([{ turnId: "turn-1" }]);
  expect(await store.inbox.read(session, "hello")).toMatchObject({ state: "settled", end: "interrupted" });
  await granted.lease.release();
});

test("a lease leaked by a living process is taken at the second look, not at the first", async () => {
  const { host, store, start, close } = scene();
  const a = start("a");
  // Granted past turn-lease: nobody registered it, as when its owner forgot it.
  await store.leases.acquire({
    sessionId: session,
    holder: { ...a.process.identity, holderId: "leaked" },
    ttlMs: 300_000,
  });
  expect((await start("b").acquire({ waitMs: 0 })).kind).toBe("busy");
  const waiting = watch(start("c").acquire());
  await host.advance(249);
  expect(waiting.value).toBeUndefined();
  await host.advance(1);
  expect(waiting.value?.kind).toBe("granted");
  if (waiting.value?.kind === "granted") await waiting.value.lease.release();
  await close();
});

test("one answer of unknown-here is forgotten when the next look finds the holder active", async () => {
  const { host, start, close } = scene();
  const holder = await start("a").take();
  const answers: Liveness[] = ["unknown-here", "active", "unknown-here", "active", "active"];
  const b = start("b", { probe: async () => answers.shift() ?? "active" });
  const waiting = watch(b.acquire({ waitMs: 2_000 }));
  await host.advance(2_000);
  expect(waiting.value?.kind).toBe("busy");
  await holder.lease.release();
  await close();
});

test("rule 7.12: a verdict is on one grant: who took the session meanwhile is not reclaimed for another's death", async () => {
  const { host, store, start } = scene();
  const a = start("a");
  await a.take();
  await a.scheduler.close();
  a.kill();
  const c = start("c");
  const b = start("b");
  const parked = b.leases.park("acquire");
  const late = watch(b.acquire({ waitMs: 0 }));
  await parked.arrived;
  parked.resume();
  // b has judged a dead; before its take arrives, c takes the session.
  const second = b.leases.park("acquire");
  await second.arrived;
  const living = await c.take();
  second.resume();
  await host.settle();
  expect(late.value).toMatchObject({ kind: "busy", holder: { instanceId: "c" } });
  expect((await store.leases.read(session))?.holder.holderId).toBe(living.lease.grant.holderId);
  await living.lease.release();
});

test("an active holder that does not renew keeps the session to its expiry, and no longer", async () => {
  const { host, store, start, switchOff } = scene();
  const a = start("a");
  a.process.register("idle");
  await store.leases.acquire({
    sessionId: session,
    holder: { ...a.process.identity, holderId: "idle" },
    ttlMs: 10_000,
  });
  const waiting = watch(start("b").acquire());
  await host.advance(9_990);
  expect(waiting.value).toBeUndefined();
  await host.advance(260);
  expect(waiting.value?.kind).toBe("granted");
  await switchOff();
});

test("of a holder nobody can judge, another boot's lease is taken after a whole TTL of standstill, and not before", async () => {
  const { host, start, switchOff } = scene();
  await start("a").take({ ttlMs: 60_000, renewEveryMs: 10_000 });
  host.reboot();
  const waiting = watch(start("b", { probe: async () => "unknown" }).acquire({ waitMs: 600_000 }));
  await host.advance(59_990);
  expect(waiting.value).toBeUndefined();
  await host.advance(500);
  expect(waiting.value?.kind).toBe("granted");
  await switchOff();
});

test("every renewal begins the standstill anew", async () => {
  const { host, store, start, switchOff } = scene();
  const other = { instanceId: "far", host: "far", bootId: "far", pid: 1, holderId: "far" };
  const granted = await store.leases.acquire({ sessionId: session, holder: other, ttlMs: 60_000 });
  if (granted.kind !== "granted") throw new Error(granted.kind);
  const grant = { sessionId: session, holderId: "far", fencingToken: granted.fencingToken };
  const waiting = watch(start("b", { probe: async () => "unknown" }).acquire({ waitMs: 900_000 }));
  // It renews, but the clock it renews by cannot be compared: the store of this host sees it expired only by its own.
  for (let count = 0; count < 10; count++) {
    await host.advance(50_000);
    expect(waiting.value).toBeUndefined();
    await store.leases.renew(grant, 60_000);
  }
  await host.advance(60_500);
  expect(waiting.value?.kind).toBe("granted");
  await switchOff();
});

test("a renewal between the last look and the take keeps the lease of a holder nobody can judge", async () => {
  const { host, store, start, switchOff } = scene();
  const other = { instanceId: "far", host: "far", bootId: "far", pid: 1, holderId: "far" };
  const granted = await store.leases.acquire({ sessionId: session, holder: other, ttlMs: 60_000 });
  if (granted.kind !== "granted") throw new Error(granted.kind);
  const grant = { sessionId: session, holderId: "far", fencingToken: granted.fencingToken };
  host.reboot();
  const b = start("b", { probe: async () => "unknown" });
  const waiting = watch(b.acquire({ waitMs: 900_000 }));
  await host.advance(1_000);
  const parked = b.leases.park("acquire");
  await host.advance(60_000);
  await parked.arrived;
  await store.leases.renew(grant, 60_000);
  parked.resume();
  await host.advance(1_000);
  expect(waiting.value).toBeUndefined();
  expect((await store.leases.read(session))?.holder.holderId).toBe("far");
  await switchOff();
});

test("a lease of an earlier boot is dead where the file system is local", async () => {
  const { host, start, switchOff } = scene();
  await start("a").take();
  host.reboot();
  const granted = await start("b").take({ waitMs: 0 });
  expect(granted.lease.fencingToken).toBe(2);
  await switchOff();
});

test("neither a step of the wall clock nor a sleep of the machine makes a living holder reclaimable", async () => {
  const { host, start, close } = scene();
  const holder = await start("a").take();
  const waiting = watch(start("b").acquire());
  host.jumpWall(86_400_000);
  await host.advance(5_000);
  host.jumpWall(-2 * 86_400_000);
  host.suspend(200_000);
  await host.advance(120_000);
  expect(waiting.value).toBeUndefined();
  await holder.lease.confirm();
  await holder.lease.release();
  await host.advance(250);
  if (waiting.value?.kind === "granted") await waiting.value.lease.release();
  await close();
});
