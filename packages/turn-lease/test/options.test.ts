import { CodedError } from "@turnkeeper/kernel";
import { acquireTurnLease, checkTurnLeaseOptions, turnLeaseDefaults } from "@turnkeeper/turn-lease";
import type { TurnLeaseOptions } from "@turnkeeper/turn-lease";
import { expect, test } from "vitest";
import { leaseLost } from "../src/errors.ts";
import { resolveTurnLeaseOptions } from "../src/options.ts";
import { scene, session } from "./scene.ts";

test("the defaults are those of the contract", () => {
  expect(turnLeaseDefaults).toEqual({ ttlMs: 300_000, renewEveryMs: 60_000, waitMs: 1_800_000, pollMs: 250 });
  expect(resolveTurnLeaseOptions({})).toMatchObject({ ...turnLeaseDefaults, marginMs: 30_000 });
  expect(resolveTurnLeaseOptions({}).mayRenew()).toBe(true);
});

test("a value out of range is refused with its option, what was expected and what came, and nothing is asked", async () => {
  const { start, close } = scene();
  const a = start("a");
  const wrong: readonly [keyof TurnLeaseOptions, number][] = [
    ["ttlMs", 99],
    ["ttlMs", Number.NaN],
    ["renewEveryMs", 0],
    ["renewEveryMs", Number.POSITIVE_INFINITY],
    ["waitMs", -1],
    ["pollMs", 9],
  ];
  for (const [option, value] of wrong) {
    const refusal = await a.acquire({ [option]: value }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "OPTION_INVALID", context: { option } });
    expect(String(refusal)).toContain(`got ${value}`);
  }
  const misspelt: object = { ttl: 5 };
  await expect(acquireTurnLease(a.deps, session, misspelt)).rejects.toMatchObject({
    code: "OPTION_INVALID",
    context: { option: "ttl" },
  });
  expect(a.leases.callCounts.acquire).toBe(0);
  await close();
});

test("two renewals must fit before the margin", () => {
  expect(() => resolveTurnLeaseOptions({ ttlMs: 60_000, renewEveryMs: 27_001 })).toThrow(/at most 27000.*got 27001/);
  expect(resolveTurnLeaseOptions({ ttlMs: 60_000, renewEveryMs: 27_000 }).marginMs).toBe(6_000);
  expect(resolveTurnLeaseOptions({ ttlMs: 300, renewEveryMs: 100 }).marginMs).toBe(50);
});

test("options are refused before anything is acquired as they are when it is", () => {
  expect(() => checkTurnLeaseOptions({ ttlMs: 99 })).toThrow(/ttlMs must be .* at least 100, got 99/);
  let refusal: unknown;
  try {
    checkTurnLeaseOptions({ ttlMs: 1000, renewEveryMs: 500 });
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toMatchObject({ code: "OPTION_INVALID", context: { option: "renewEveryMs", mostMs: 450 } });
  expect(() => checkTurnLeaseOptions({ ttlMs: 1000, renewEveryMs: 450 })).not.toThrow();
});

test("a lost lease says whose, why and what to do, survives JSON, and keeps its cause", () => {
  const grant = { sessionId: "s", holderId: "h", fencingToken: 7 };
  const holder = { instanceId: "i", host: "box", bootId: "b", pid: 42, holderId: "other" };
  const replaced = leaseLost(grant, { cause: "replaced", holder });
  expect(CodedError.is(replaced, "LEASE_LOST")).toBe(true);
  expect(replaced.message).toMatch(/session s \(fencing token 7\).*process 42 on box.*Stop the turn/);
  expect(structuredClone(replaced.toJSON())).toEqual({
    code: "LEASE_LOST",
    message: replaced.message,
    context: { sessionId: "s", fencingToken: 7, cause: "replaced", holder },
  });
  const failure = new Error("disk");
  expect(leaseLost(grant, { cause: "unconfirmed", failure })).toMatchObject({ cause: failure });
  expect(leaseLost(grant, { cause: "unconfirmed", failure }).message).toContain("disk");
  const messages = (["replaced", "unconfirmed", "withheld", "released"] as const).map(
    (cause) => leaseLost(grant, { cause }).message,
  );
  expect(new Set(messages).size).toBe(4);
});
