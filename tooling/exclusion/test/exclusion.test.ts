import { expect, test } from "vitest";
import { runExclusion } from "../src/run.ts";
import type { RunOptions } from "../src/run.ts";

const underFaults: RunOptions = {
  seed: 7,
  processCount: 8,
  durationMs: 8_000,
  // A machine with other work gets longer to be hit as often; what is never reached fails.
  patienceMs: 60_000,
  floors: { grants: 12, kills: 3, stops: 4, takeoversByDeath: 1, takeoversByExpiry: 2, staleRefusals: 1 },
  mode: "fenced",
};

/** The holder is stopped again and again beyond its expiry, until the rule is seen to be broken. */
const control: Omit<RunOptions, "mode" | "soughtRule"> = {
  seed: 7,
  processCount: 3,
  durationMs: 0,
  patienceMs: 120_000,
  floors: { takeoversByExpiry: 1 },
  mix: { kill: 0, shortStop: 0, longStop: 0.5 },
};

function saysOf(violations: readonly string[], rule: string): readonly string[] {
  return violations.filter((violation) => violation.startsWith(`${rule}:`));
}

test("processes that are killed and stopped at random leave whole turns, lose nothing, and act under no lost lease", async () => {
  const { violations, reach, faultMs } = await runExclusion(underFaults);
  process.stdout.write(`${(faultMs / 1_000).toFixed(1)} s under faults: ${JSON.stringify(reach)}\n`);
  expect(violations).toEqual([]);
}, 240_000);

test("control: processes that write without regard to the token are found out", async () => {
  const { violations } = await runExclusion({ ...control, mode: "unfenced", soughtRule: "APPEND-1" });
  expect(saysOf(violations, "APPEND-1")).not.toEqual([]);
}, 240_000);

test("control: processes that start side effects without asking whether their lease stands are found out", async () => {
  const { violations } = await runExclusion({ ...control, mode: "unconfirmed", soughtRule: "LEASE-3" });
  expect(saysOf(violations, "LEASE-3")).not.toEqual([]);
}, 240_000);
