import { expect, test } from "vitest";
import { scene, usurp, watch } from "./scene.ts";
import type { Scene } from "./scene.ts";

/** The process stands still: its timers do not fire and its looks do not come, while boot time passes. */
function standStill(one: Scene, ms: number): void {
  one.host.suspend(ms);
}

test("while belief lasts confirm asks nobody", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  await host.advance(50_000);
  await lease.confirm();
  expect(a.leases.callCounts).toMatchObject({ renew: 0, read: 0 });
  await lease.release();
  await close();
});

test("after a sleep of the machine confirm renews before it trusts, even when the TTL has not passed", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  standStill(one, 30_000);
  await lease.confirm();
  expect(a.leases.callCounts.renew).toBe(1);
  await lease.confirm();
  expect(a.leases.callCounts.renew).toBe(1);
  await lease.release();
  await one.close();
});

test("a machine that woke up is noticed within a second, and the lease renewed", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  standStill(one, 30_000);
  await one.host.advance(1_000);
  expect(a.leases.callCounts.renew).toBe(1);
  await lease.release();
  await one.close();
});

test("a holder that slept past its TTL goes on when nobody took the session, and confirm waits for that", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  standStill(one, 3_600_000);
  const answer = watch(lease.confirm());
  await one.host.advance(1);
  expect(answer.error).toBeUndefined();
  expect(lease.lost.aborted).toBe(false);
  expect(a.leases.callCounts.renew).toBe(1);
  await one.host.advance(200_000);
  await lease.confirm();
  await lease.release();
  await one.close();
});

test("a holder that slept past its TTL stops when somebody took the session", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  standStill(one, 3_600_000);
  await usurp(one.store, lease.grant);
  const answer = watch(lease.confirm());
  await one.host.advance(1);
  expect(answer.error).toMatchObject({ code: "LEASE_LOST", context: { cause: "replaced" } });
  expect(lease.lost.reason).toBe(answer.error);
  await lease.release();
  await one.close();
});

test("a holder that slept past its TTL bears with a busy store for one margin, doing nothing meanwhile", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  standStill(one, 3_600_000);
  a.leases.fail("renew", "STORE_BUSY");
  let answered = "not yet";
  const answer = lease.confirm().then(() => (answered = "held"));
  await one.host.advance(20_000);
  expect(answered).toBe("not yet");
  a.leases.fail("renew", undefined);
  await one.host.advance(1_000);
  await answer;
  await lease.release();
  await one.close();
});

test("a store that stays busy for a margin after the sleep costs the lease", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  standStill(one, 3_600_000);
  a.leases.fail("renew", "STORE_BUSY");
  const answer = watch(lease.confirm());
  await one.host.advance(31_000);
  expect(answer.error).toMatchObject({ code: "LEASE_LOST", context: { cause: "unconfirmed" } });
  await lease.release();
  await one.close();
});

test("a store that never answers does not keep confirm beyond the end of belief", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  standStill(one, 30_000);
  a.leases.park("renew");
  const answer = watch(lease.confirm());
  await one.host.advance(239_000);
  expect(answer.error).toBeUndefined();
  await one.host.advance(2_000);
  expect(answer.error).toMatchObject({ code: "LEASE_LOST", context: { cause: "unconfirmed" } });
  await lease.release();
  await one.close();
});

test("an answer that was waiting while the loop was blocked counts before belief is judged", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  await one.host.advance(59_000);
  const parked = a.leases.park("renew", "answer");
  await one.host.advance(2_000);
  await parked.arrived;
  standStill(one, 260_000);
  // The loop runs again: timers first, and the answer of two hundred seconds ago is on its way.
  parked.resume();
  const answer = watch(lease.confirm());
  await one.host.advance(1_000);
  expect(answer.error).toBeUndefined();
  expect(lease.lost.aborted).toBe(false);
  await lease.release();
  await one.close();
});

test("a renewal that answers in the same breath as belief ends was in time", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  const parked = a.leases.park("renew", "answer");
  await one.host.advance(61_000);
  await parked.arrived;
  // Past the end of belief, not of the TTL: a renewal that failed so late would be the last.
  standStill(one, 215_000);
  const answer = watch(lease.confirm());
  parked.resume();
  await one.host.advance(10);
  expect(answer.error).toBeUndefined();
  expect(lease.lost.aborted).toBe(false);
  await lease.release();
  await one.close();
});

test("many side effects at once ask the store once", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  standStill(one, 3_600_000);
  const answers = Array.from({ length: 8 }, () => lease.confirm());
  await one.host.advance(10);
  await Promise.all(answers);
  expect(a.leases.callCounts.renew).toBe(1);
  await lease.release();
  await one.close();
});

test("confirm does not need evidence: whoever asks is about to move", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take({ mayRenew: () => false });
  standStill(one, 3_600_000);
  const answer = watch(lease.confirm());
  await one.host.advance(1);
  await answer.settled;
  expect([answer.error, a.leases.callCounts.renew]).toEqual([undefined, 1]);
  await lease.release();
  await one.close();
});

test("after stopRenewal confirm lives on what belief is left, and after release there is none", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  lease.stopRenewal();
  lease.stopRenewal();
  await host.advance(200_000);
  await lease.confirm();
  expect(a.leases.callCounts.renew).toBe(0);
  await host.advance(71_000);
  await expect(lease.confirm()).rejects.toMatchObject({ code: "LEASE_LOST", context: { cause: "unconfirmed" } });
  expect(lease.lost.aborted).toBe(false);
  await lease.release();
  await expect(lease.confirm()).rejects.toMatchObject({ code: "LEASE_LOST", context: { cause: "released" } });
  await close();
});

test("a confirm that waits to ask a busy store again is answered when the renewal is stopped, and leaves no timer", async () => {
  const one = scene();
  const a = one.start("a");
  const { lease } = await a.take();
  standStill(one, 30_000);
  a.leases.fail("renew", "STORE_BUSY");
  let isAnswered = false;
  const answer = lease.confirm().then(() => (isAnswered = true));
  await one.host.advance(10);
  expect(isAnswered).toBe(false);
  lease.stopRenewal();
  await one.host.settle();
  expect(isAnswered).toBe(true);
  await answer;
  await lease.release();
  await one.close();
});
