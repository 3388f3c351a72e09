import { existsSync, readFileSync } from "node:fs";
import { uptime } from "node:os";
import { systemHost } from "@turnkeeper/kernel";
import { describe, expect, test } from "vitest";

const { clock, random } = systemHost;
const bootIdPath = "/proc/sys/kernel/random/boot_id";
const hasBootIdFile = existsSync(bootIdPath);

describe("the system clock", () => {
  test("tells wall time since the epoch, and boot time since the machine started, in milliseconds", () => {
    // No closer: an operator may step the wall clock between the two readings.
    expect(Math.abs(clock.wallMs() - Date.now())).toBeLessThan(60_000);
    // The kernel tells it in steps of 10 ms, and the distance is kept as long as it has moved by less than 20.
    const bootBefore = uptime() * 1_000;
    const bootMs = clock.bootMs();
    expect(bootMs).toBeGreaterThanOrEqual(bootBefore - 30);
    expect(bootMs).toBeLessThanOrEqual(uptime() * 1_000 + 30);
  });

  test("never goes back in monotonic or boot time", () => {
    let [lastMonotonicMs, lastBootMs] = [-Infinity, -Infinity];
    for (let reading = 0; reading < 1_000; reading++) {
      const [monotonicMs, bootMs] = [clock.monotonicMs(), clock.bootMs()];
      expect(monotonicMs).toBeGreaterThanOrEqual(lastMonotonicMs);
      expect(bootMs).toBeGreaterThanOrEqual(lastBootMs);
      [lastMonotonicMs, lastBootMs] = [monotonicMs, bootMs];
    }
  });

  test.runIf(hasBootIdFile)("names the boot as the kernel does", () => {
    expect(clock.bootId).toBe(readFileSync(bootIdPath, "utf8").trim());
    expect(clock.bootId).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe("system chance", () => {
  test("is a number in [0, 1), and not the same again", () => {
    const drawn = Array.from({ length: 100 }, () => random.unit());
    for (const unit of drawn) expect(unit >= 0 && unit < 1).toBe(true);
    expect(new Set(drawn).size).toBeGreaterThan(90);
  });

  test("makes ids that are ULIDs, and no two the same", () => {
    const ids = Array.from({ length: 10_000 }, () => random.id());
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id))).toEqual([]);
  });

  test("is one frozen host", () => {
    expect(Object.isFrozen(systemHost)).toBe(true);
  });
});
