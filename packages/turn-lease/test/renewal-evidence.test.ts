import { expect, test } from "vitest";
import { scene, session } from "./scene.ts";

test("a lease is renewed every renewEveryMs, for hours, on the shared scheduler", async () => {
  const { host, store, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take();
  await host.advance(2 * 3_600_000);
  expect(lease.lost.aborted).toBe(false);
  expect(a.leases.callCounts.renew).toBeGreaterThanOrEqual(119);
  expect(a.leases.callCounts.renew).toBeLessThanOrEqual(121);
  expect((await store.leases.read(session))?.expiresInMs).toBeGreaterThan(230_000);
  await lease.release();
  await close();
});

test("rule 7.16: without evidence nothing is renewed, silently, and evidence makes good before belief ends", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  let hasEvidence = false;
  const { lease } = await a.take({ mayRenew: () => hasEvidence });
  await host.advance(265_000);
  expect(a.leases.callCounts.renew).toBe(0);
  expect(lease.lost.aborted).toBe(false);
  hasEvidence = true;
  await host.advance(2_000);
  expect(a.leases.callCounts.renew).toBe(1);
  await host.advance(200_000);
  expect(lease.lost.aborted).toBe(false);
  await lease.release();
  await close();
});

test("evidence that comes between the last look and the end of belief still keeps the lease", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  let hasEvidence = false;
  const { lease } = await a.take({ mayRenew: () => hasEvidence });
  await host.advance(269_500);
  hasEvidence = true;
  await host.advance(499);
  expect(a.leases.callCounts.renew).toBe(0);
  await host.advance(10);
  expect(lease.lost.aborted).toBe(false);
  expect(a.leases.callCounts.renew).toBe(1);
  await lease.release();
  await close();
});

test("a turn without evidence to the end of belief loses its lease, as withheld", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take({ mayRenew: () => false });
  await host.advance(270_001);
  expect(lease.lost.reason).toMatchObject({ code: "LEASE_LOST", context: { cause: "withheld" } });
  await lease.release();
  await close();
});

test("a holder without evidence that was replaced hears of it at the next look, without writing", async () => {
  const { host, store, start, close } = scene();
  const a = start("a");
  const { lease } = await a.take({ mayRenew: () => false });
  await host.advance(61_000);
  await store.turns.settleForeign(lease.grant);
  await host.advance(1_000);
  expect(lease.lost.reason).toMatchObject({ context: { cause: "replaced" } });
  expect(a.leases.callCounts.renew).toBe(0);
  await lease.release();
  await close();
});

test("evidence that cannot be read is none, and is reported by the scheduler", async () => {
  const { host, start, close } = scene();
  const a = start("a");
  const emitWarnings: unknown[] = [];
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning: unknown) => void emitWarnings.push(warning);
  const broken = (): never => {
    throw new Error("no evidence to be had");
  };
  const { lease } = await a.take({ mayRenew: broken });
  await host.advance(270_001);
  process.emitWarning = emitWarning;
  expect(lease.lost.reason).toMatchObject({ context: { cause: "withheld" } });
  expect(emitWarnings.length).toBeGreaterThan(1);
  await lease.release();
  await close();
});
