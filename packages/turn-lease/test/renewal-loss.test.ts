import { CodedError } from "@turnkeeper/kernel";
import { expect, test } from "vitest";
import { instantOf } from "../src/belief.ts";
import type { TurnLease } from "../src/lease.ts";
import { resolveTurnLeaseOptions } from "../src/options.ts";
import { Renewal } from "../src/renewal.ts";
import { scene, usurp, watch } from "./scene.ts";

const ttlMs = 300_000;
/** A tenth of the TTL. */
const beliefMs = 270_000;

interface Overlap {
  /** Boot times of the old holder's side effects. */
  readonly effects: readonly number[];
  readonly grantedAnewAtMs: number;
}

/**
 * A holder whose renewals fail from the start works on, one side effect a second, as long as `mayAct` lets it; a
 * contender waits for the expiry, since nothing can be learned about the holder.
 */
async function cutOff(mayAct: (lease: TurnLease) => Promise<boolean>): Promise<Overlap> {
  const { host, start, switchOff } = scene();
  const a = start("a");
  const { lease } = await a.take();
  a.leases.fail("renew", "STORE_BUSY");
  a.leases.fail("read", "STORE_BUSY");
  const effects: number[] = [];
  const work = async (): Promise<void> => {
    if (!(await mayAct(lease))) return;
    effects.push(host.clock.bootMs());
    a.deps.host.timers.after(1_000, () => void work());
  };
  await work();
  const contender = watch(start("b", { probe: async () => "unknown" }).acquire());
  while (contender.value === undefined) await host.advance(1_000);
  const grantedAnewAtMs = host.clock.bootMs();
  await host.advance(10_000);
  await switchOff();
  return { effects, grantedAnewAtMs };
}

async function confirmed(lease: TurnLease): Promise<boolean> {
  try {
    await lease.confirm();
    return true;
  } catch (error) {
    if (CodedError.is(error, "LEASE_LOST")) return false;
    throw error;
  }
}

test("LEASE-3: a holder that cannot renew stops believing before the store would grant anew", async () => {
  const { effects, grantedAnewAtMs } = await cutOff(confirmed);
  expect(effects.length).toBeGreaterThan(200);
  expect(Math.max(...effects)).toBeLessThan(grantedAnewAtMs);
});

test("LEASE-3 control: without asking whether it still holds it fails, side effects of two holders overlap", async () => {
  const { effects, grantedAnewAtMs } = await cutOff(async () => true);
  expect(Math.max(...effects)).toBeGreaterThanOrEqual(grantedAnewAtMs);
});

/** The grant is made at once and its answer takes two minutes. Answers when belief ends, and when the store would grant anew. */
async function slowAnswer(
  countsFromSending: boolean,
): Promise<{ readonly beliefEndedAtMs: number; readonly grantableAtMs: number }> {
  const { host, start, switchOff } = scene();
  const a = start("a");
  a.leases.fail("renew", "STORE_BUSY");
  a.leases.fail("read", "STORE_BUSY");
  const grantableAtMs = host.clock.bootMs() + ttlMs;
  const parked = a.leases.park("acquire", "answer");
  const asking = watch(a.acquire());
  await parked.arrived;
  await host.advance(120_000);
  parked.resume();
  await host.settle();
  if (asking.value?.kind !== "granted") throw new Error("not granted");
  const { lease } = asking.value;
  const fromAnswer = (): Renewal =>
    new Renewal({ ...a.deps, store: a.leases }, lease.grant, resolveTurnLeaseOptions({}), instantOf(host.clock));
  const { lost } = countsFromSending ? lease : fromAnswer();
  while (!lost.aborted) await host.advance(500);
  await switchOff();
  return { beliefEndedAtMs: host.clock.bootMs(), grantableAtMs };
}

test("LEASE-3: belief counts from before the request was sent, however long the answer took", async () => {
  const { beliefEndedAtMs, grantableAtMs } = await slowAnswer(true);
  expect(beliefEndedAtMs).toBeLessThan(grantableAtMs);
});

test("LEASE-3 control: without counting from the sending it fails, belief outlasts the grant", async () => {
  const { beliefEndedAtMs, grantableAtMs } = await slowAnswer(false);
  expect(beliefEndedAtMs).toBeGreaterThan(grantableAtMs);
});

test("LEASE-3: and so it does after a renewal: from before that was sent", async () => {
  const { host, start, switchOff } = scene();
  const a = start("a");
  const { lease } = await a.take();
  const parked = a.leases.park("renew", "answer");
  await host.advance(61_000);
  await parked.arrived;
  const grantableAtMs = ((await a.leases.read("session-1"))?.expiresInMs ?? Number.NaN) + host.clock.bootMs();
  await host.advance(120_000);
  parked.resume();
  await host.settle();
  a.leases.fail("renew", "STORE_BUSY");
  a.leases.fail("read", "STORE_BUSY");
  while (!lease.lost.aborted) await host.advance(500);
  await switchOff();
  expect(host.clock.bootMs()).toBeGreaterThan(grantableAtMs - ttlMs + beliefMs - 1_000);
  expect(host.clock.bootMs()).toBeLessThan(grantableAtMs);
});

test("rule 7.15: a renewal that fails is not a loss: it is repeated, and side effects go on while belief lasts", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  a.leases.fail("renew", "STORE_BUSY");
  await host.advance(200_000);
  expect(lease.lost.aborted).toBe(false);
  await lease.confirm();
  expect(a.leases.callCounts.renew).toBeGreaterThan(100);
  a.leases.fail("renew", undefined);
  await host.advance(3_600_000);
  await lease.confirm();
  await lease.release();
  await close();
});

test("a renewal whose answer was lost counts from its next success", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  a.leases.fail("renew", "STORE_IO", "afterwards");
  await host.advance(100_000);
  a.leases.fail("renew", undefined);
  await host.advance(260_000);
  expect(lease.lost.aborted).toBe(false);
  await lease.release();
  await close();
});

test("a holder that no renewal reaches loses its lease at TTL less margin, as unconfirmed, with the store's error", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  a.leases.fail("renew", "STORE_IO");
  a.leases.fail("read", "STORE_IO");
  await host.advance(beliefMs - 1);
  expect(lease.lost.aborted).toBe(false);
  await host.advance(2);
  expect(lease.lost.reason).toMatchObject({ code: "LEASE_LOST", context: { cause: "unconfirmed", fencingToken: 1 } });
  expect(CodedError.is(lease.lost.reason) && lease.lost.reason.cause).toMatchObject({ code: "STORE_IO" });
  await expect(lease.confirm()).rejects.toBe(lease.lost.reason);
  expect(await lease.release()).toEqual({ kind: "lost" });
  expect(a.leases.callCounts.release).toBe(0);
  await close();
});

test("a store that never answers a renewal costs the lease at the same moment", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  a.leases.park("renew");
  await host.advance(beliefMs - 1);
  expect(lease.lost.aborted).toBe(false);
  await host.advance(2);
  expect(lease.lost.reason).toMatchObject({ context: { cause: "unconfirmed" } });
  await lease.release();
  await close();
});

test("rule 7.15: a row that names another is a loss at once, told by the renewal or by the row read back", async () => {
  for (const isRenewalBusy of [false, true]) {
    const { host, store, start, close } = scene();
    const a = start("a");
    const { lease } = await a.take();
    if (isRenewalBusy) a.leases.fail("renew", "STORE_BUSY");
    await usurp(store, lease.grant);
    await host.advance(61_000);
    expect(lease.lost.reason).toMatchObject({
      code: "LEASE_LOST",
      context: { cause: "replaced", holder: { holderId: "usurper" } },
    });
    expect(await lease.release()).toEqual({ kind: "lost" });
    await close();
  }
});

test("a grant that somebody settled and freed is a loss too", async () => {
  const { host, store, start, close } = scene();
  const { lease } = await start("a").take();
  await store.turns.settleForeign(lease.grant);
  await host.advance(61_000);
  expect(lease.lost.reason).toMatchObject({ context: { cause: "replaced" } });
  await lease.release();
  await close();
});

test("nothing that arrives after stopRenewal or release aborts: neither a lost renewal nor a failed one", async () => {
  for (const outcome of ["lost", "failed"]) {
    const { host, store, start, close } = scene();
    const a = start("a");
    const { lease } = await a.take();
    if (outcome === "failed") a.leases.fail("renew", "STORE_IO");
    const parked = a.leases.park("renew");
    await host.advance(61_000);
    await parked.arrived;
    lease.stopRenewal();
    await usurp(store, lease.grant);
    const { read: readCount } = a.leases.callCounts;
    parked.resume();
    await host.advance(400_000);
    expect(lease.lost.aborted).toBe(false);
    expect(a.leases.callCounts.read).toBe(readCount);
    expect(await lease.release()).toEqual({ kind: "stale" });
    await close();
  }
});

test("a renewal of a finished turn that answers late leaves the next turn's lease alone", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const first = (await a.take()).lease;
  const parked = a.leases.park("renew");
  await host.advance(61_000);
  await first.release();
  const second = (await a.take()).lease;
  parked.resume();
  await host.advance(1_000);
  expect([first.lost.aborted, second.lost.aborted]).toEqual([false, false]);
  await second.confirm();
  await second.release();
  await close();
});

test("a renewal that succeeds after the release leaves no timer and no belief", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  const parked = a.leases.park("renew", "answer");
  await host.advance(61_000);
  await parked.arrived;
  await lease.release();
  parked.resume();
  await host.settle();
  expect(host.pendingTimerCount()).toBe(0);
  await expect(lease.confirm()).rejects.toMatchObject({ context: { cause: "released" } });
  await close();
});

test("a row that was read back before the turn ended, and arrives afterwards, aborts nothing", async () => {
  const { host, store, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  a.leases.fail("renew", "STORE_BUSY");
  await usurp(store, lease.grant);
  const parked = a.leases.park("read", "answer");
  await host.advance(61_000);
  await parked.arrived;
  lease.stopRenewal();
  parked.resume();
  await host.settle();
  expect(lease.lost.aborted).toBe(false);
  expect(await lease.release()).toEqual({ kind: "stale" });
  await close();
});
