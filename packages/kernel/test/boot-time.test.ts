import { describe, expect, it } from "vitest";
import { bootTime } from "../src/boot-time.ts";

function machine(): {
  bootMs: () => number;
  runs(ms: number): void;
  sleeps(ms: number): void;
  steps(ms: number): void;
  readCount: () => number;
} {
  let [uptimeMs, monotonicMs, wallMs, reads] = [500_000, 100, 1_000_000_000, 0];
  const bootMs = bootTime({
    uptimeMs: () => {
      reads++;
      return Math.floor(uptimeMs / 10) * 10;
    },
    monotonicMs: () => monotonicMs,
    wallMs: () => wallMs,
  });
  return {
    bootMs,
    runs: (ms) => ((uptimeMs += ms), (monotonicMs += ms), (wallMs += ms), undefined),
    sleeps: (ms) => ((uptimeMs += ms), (wallMs += ms), undefined),
    steps: (ms) => ((wallMs += ms), undefined),
    readCount: () => reads,
  };
}

describe("boot time", () => {
  it("is read from the kernel once, and then follows the monotonic clock", () => {
    const { bootMs, runs, readCount } = machine();
    expect(bootMs()).toBe(500_000);
    for (let second = 0; second < 100; second++) {
      runs(1000);
      bootMs();
    }
    expect(bootMs()).toBe(600_000);
    expect(readCount()).toBe(1);
  });

  it("counts a sleep at the first reading after it", () => {
    const { bootMs, runs, sleeps } = machine();
    bootMs();
    runs(1000);
    sleeps(3_600_000);
    expect(bootMs()).toBe(500_000 + 1000 + 3_600_000);
  });

  it("is not moved by a step of the wall clock, forward or back", () => {
    const { bootMs, runs, steps } = machine();
    bootMs();
    for (const step of [7_200_000, -7_200_000, 30, -30]) {
      steps(step);
      runs(10);
      bootMs();
    }
    expect(bootMs()).toBeGreaterThanOrEqual(500_030);
    expect(bootMs()).toBeLessThanOrEqual(500_050);
  });

  it("never goes back, though the kernel tells it in steps", () => {
    const { bootMs, runs, steps } = machine();
    runs(9);
    let latest = bootMs();
    for (let reading = 0; reading < 200; reading++) {
      runs(0.7);
      steps(reading % 2 === 0 ? 50 : -50);
      const now = bootMs();
      expect(now).toBeGreaterThanOrEqual(latest);
      latest = now;
    }
  });
});
