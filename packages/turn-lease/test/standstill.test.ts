import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import type { LeaseView } from "@turnkeeper/state-store";
import { expect, test } from "vitest";
import { HolderJudgement } from "../src/holder-judgement.ts";
import type { Reclaim } from "../src/holder-judgement.ts";
import type { Liveness } from "../src/presence.ts";

const ttlMs = 1_000;

function leaseOf(holderId: string, fencingToken: number): LeaseView {
  const holder = { holderId, instanceId: "other", host: "here", bootId: "boot", pid: 1 };
  const times = { expiresInMs: ttlMs, acquiredAtMs: 0, expiresAtMs: 0 };
  return { sessionId: "s", holder, fencingToken, ttlMs, renewCount: 0, standing: "live", ...times };
}

/** A contender that looks at a lease, and hears what the holder's process is made to answer. */
function contender(host: VirtualHost): {
  look(lease: LeaseView, answer: Liveness, readTakesMs?: number): Promise<Reclaim | undefined>;
} {
  let heard: Liveness = "unknown";
  const judgement = new HolderJudgement({ probe: async () => heard }, host.clock);
  return {
    look: async (lease, answer, readTakesMs = 0) => {
      heard = answer;
      const readBootMs = host.clock.bootMs();
      await host.advance(readTakesMs);
      return await judgement.judge(lease, readBootMs);
    },
  };
}

test("a leak is of one grant: the next holder of that process is not taken for the one before", async () => {
  const { look } = contender(virtualHost());
  expect(await look(leaseOf("first", 1), "unknown-here")).toBeUndefined();
  expect(await look(leaseOf("second", 2), "unknown-here")).toBeUndefined();
  expect(await look(leaseOf("second", 2), "unknown-here")).toEqual({
    sessionId: "s",
    holderId: "second",
    fencingToken: 2,
  });
});

test("a standstill is never counted too long: from after the first read to before the last was asked for", async () => {
  const host = virtualHost();
  const { look } = contender(host);
  const lease = leaseOf("silent", 1);
  expect(await look(lease, "unknown", 40)).toBeUndefined();
  await host.advance(ttlMs - 10);
  expect(await look(lease, "unknown", 40)).toBeUndefined();
  expect(await look(lease, "unknown")).toMatchObject({ holderId: "silent", renewCount: 0 });
});

test("a holder that says it is active begins its standstill anew", async () => {
  const host = virtualHost();
  const { look } = contender(host);
  const lease = leaseOf("slow", 1);
  expect(await look(lease, "unknown")).toBeUndefined();
  await host.advance(ttlMs / 2);
  expect(await look(lease, "active")).toBeUndefined();
  await host.advance(ttlMs / 2);
  expect(await look(lease, "unknown")).toBeUndefined();
  await host.advance(ttlMs);
  expect(await look(lease, "unknown")).toMatchObject({ holderId: "slow" });
});
