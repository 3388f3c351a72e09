import { describe, expect, it } from "vitest";
import { World } from "../src/world.ts";

const seeds = 120;
const steps = 90;

describe("the whole system under faults between any two steps", () => {
  it(
    `keeps every invariant after every step, and comes to rest, for ${seeds} seeds`,
    { timeout: 120_000 },
    async () => {
      const reached: Record<string, number> = {};
      for (let seed = 1; seed <= seeds; seed++) {
        const report = await new World(seed).run(steps);
        expect(report.violations, `replay with: pnpm sim --first ${seed} --seeds 1 --steps ${steps}`).toEqual([]);
        for (const [what, count] of Object.entries(report.reached)) reached[what] = (reached[what] ?? 0) + count;
      }
      // A green run must have been somewhere: every fault and every end was met, often enough to mean something.
      const wanted = [
        "fault die",
        "fault stop",
        "fault busy",
        "fault unknown",
        "kill",
        "stop",
        "suspend",
        "effect",
        "silence",
      ];
      for (const what of [
        ...wanted,
        "outcome answered",
        "outcome failed",
        "outcome busy",
        "outcome queued",
        "outcome cancelled",
      ]) {
        expect(reached[what] ?? 0, what).toBeGreaterThanOrEqual(10);
      }
      for (const reason of ["stalled", "lease-lost", "user-stop", "user-message"]) {
        expect(reached[`outcome interrupted ${reason}`] ?? 0, reason).toBeGreaterThanOrEqual(10);
      }
    },
  );

  it("is the same run for the same seed", async () => {
    const [first, second] = [await new World(7).run(40), await new World(7).run(40)];
    expect(second).toEqual(first);
  });
});
