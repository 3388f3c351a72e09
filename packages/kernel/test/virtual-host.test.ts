import { CodedError } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { beforeEach, describe, expect, test } from "vitest";

let host: VirtualHost;
let log: string[];

beforeEach(() => {
  host = virtualHost();
  log = [];
});

const note =
  (what: string): (() => void) =>
  () => {
    log.push(`${what}@${host.clock.monotonicMs()}`);
  };

const readings = (): Record<string, number | string> => ({
  wall: host.clock.wallMs(),
  monotonic: host.clock.monotonicMs(),
  boot: host.clock.bootMs(),
  bootId: host.clock.bootId,
});

describe("advancing a virtual host", () => {
  test("fires due timers by due time, then in the order they were set, each at its own moment", async () => {
    host.timers.after(30, note("late"));
    host.timers.after(10, note("first"));
    host.timers.after(10, note("second"));
    host.timers.after(31, note("not yet"));
    await host.advance(30);
    expect(log).toEqual(["first@10", "second@10", "late@30"]);
    expect(host.pendingTimerCount()).toBe(1);
    await host.advance(1);
    expect(log.at(-1)).toBe("not yet@31");
    expect(host.pendingTimerCount()).toBe(0);
  });

  test("fires timers that a timer or a promise behind it sets, where they fall into the same stretch", async () => {
    host.timers.after(10, () => {
      note("outer")();
      void Promise.resolve()
        .then(() => Promise.resolve())
        .then(() => host.timers.after(5, note("inner")));
      host.timers.after(0, note("at once"));
    });
    host.timers.after(12, note("between"));
    await host.advance(20);
    expect(log).toEqual(["outer@10", "at once@10", "between@12", "inner@15"]);
  });

  test("lets promises settle before the first timer and after the last", async () => {
    let settledCount = 0;
    const settle = async (): Promise<void> => {
      for (let hop = 0; hop < 50; hop++) await Promise.resolve();
      settledCount++;
    };
    void settle();
    host.timers.after(1, () => {
      expect(settledCount).toBe(1);
      void settle();
    });
    await host.advance(1);
    expect(settledCount).toBe(2);
  });

  test("moves all three clocks alike", async () => {
    const before = { wall: host.clock.wallMs(), monotonic: host.clock.monotonicMs(), boot: host.clock.bootMs() };
    await host.advance(1_234.5);
    expect(readings()).toMatchObject({
      wall: before.wall + 1_234.5,
      monotonic: before.monotonic + 1_234.5,
      boot: before.boot + 1_234.5,
    });
  });

  test("never fires a cancelled timer, though it is cancelled by another of the same moment", async () => {
    const cancelLater = host.timers.after(5, note("cancelled before"));
    cancelLater();
    cancelLater();
    let cancelSecond = (): void => undefined;
    host.timers.after(10, () => cancelSecond());
    cancelSecond = host.timers.after(10, note("cancelled by the first"));
    await host.advance(10);
    cancelSecond();
    expect(log).toEqual([]);
    expect(host.pendingTimerCount()).toBe(0);
  });

  test("carries delays beyond 2^31 ms", async () => {
    host.timers.after(2 ** 40, note("far"));
    await host.advance(2 ** 40 - 1);
    expect(log).toEqual([]);
    await host.advance(1);
    expect(log).toEqual([`far@${2 ** 40}`]);
  });

  test("runs a poll callback without moving time", async () => {
    host.timers.afterPoll(note("polled"));
    const cancel = host.timers.afterPoll(note("cancelled"));
    cancel();
    expect(log).toEqual([]);
    await host.advance(0);
    expect(log).toEqual(["polled@0"]);
  });

  test("runs what is due soon without time moving or a test moving it", async () => {
    host.timers.soon(note("soon"));
    host.timers.soon(note("cancelled"))();
    expect(log).toEqual([]);
    await Promise.resolve();
    expect(log).toEqual(["soon@0"]);
  });

  test("refuses what the system host refuses, and time that would run backwards", async () => {
    for (const ms of [Number.NaN, Infinity, -1]) {
      expect(() => host.timers.after(ms, note("never"))).toThrow(CodedError);
      await expect(host.advance(ms)).rejects.toThrow(CodedError);
      expect(() => host.suspend(ms)).toThrow(CodedError);
    }
    expect(host.pendingTimerCount()).toBe(0);
  });
});

describe("a virtual host", () => {
  test("steps the wall clock alone", async () => {
    const before = readings();
    host.timers.after(10, note("timer"));
    host.jumpWall(-3_600_000);
    expect(readings()).toEqual({ ...before, wall: Number(before["wall"]) - 3_600_000 });
    host.jumpWall(7_200_000);
    expect(readings()).toEqual({ ...before, wall: Number(before["wall"]) + 3_600_000 });
    await host.advance(9);
    expect(log).toEqual([]);
  });

  test("sleeps: wall and boot time pass, monotonic time and timers stand still", async () => {
    const before = readings();
    host.timers.after(10, note("timer"));
    host.suspend(60_000);
    expect(readings()).toEqual({
      ...before,
      wall: Number(before["wall"]) + 60_000,
      boot: Number(before["boot"]) + 60_000,
    });
    await host.advance(9);
    expect(log).toEqual([]);
    await host.advance(1);
    expect(log).toEqual(["timer@10"]);
  });

  test("reboots: another boot id each time, boot time from zero, no timer survives, wall time goes on", async () => {
    const before = readings();
    host.timers.after(10, note("timer"));
    host.reboot();
    const once = readings();
    expect(once).toMatchObject({ boot: 0, wall: before["wall"] });
    host.reboot();
    expect(new Set([before["bootId"], once["bootId"], host.clock.bootId]).size).toBe(3);
    expect(host.pendingTimerCount()).toBe(0);
    await host.advance(10);
    expect(log).toEqual([]);
    expect(host.clock.bootMs()).toBe(10);
  });

  test("settles promises and I/O that is due without moving time", async () => {
    const before = readings();
    let isSettled = false;
    setImmediate(() => {
      void Promise.resolve().then(() => {
        isSettled = true;
      });
    });
    await host.settle();
    expect(isSettled).toBe(true);
    expect(readings()).toEqual(before);
  });

  test("begins where it is told", () => {
    host = virtualHost({ wallMs: 1_000, bootMs: 2_000, bootId: "boot-7" });
    expect(readings()).toEqual({ wall: 1_000, monotonic: 0, boot: 2_000, bootId: "boot-7" });
  });

  test("draws the same ids and numbers from the same seed, and others from another", () => {
    const drawn = (seed?: number): readonly unknown[] => {
      const { random } = virtualHost(seed === undefined ? {} : { seed });
      return Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? random.id() : random.unit()));
    };
    expect(drawn(7)).toEqual(drawn(7));
    expect(drawn()).toEqual(drawn(1));
    expect(drawn(7)).not.toEqual(drawn(8));
  });

  test("makes ids that are unique, and sort by its wall clock", async () => {
    const ids: string[] = [];
    for (let round = 0; round < 100; round++) {
      ids.push(...Array.from({ length: 20 }, () => host.random.id()));
      await host.advance(1);
    }
    expect(new Set(ids).size).toBe(ids.length);
    const times = ids.map((id) => id.slice(0, 10));
    expect(times).toEqual(times.toSorted());
    expect(new Set(times).size).toBe(100);
  });

  test("draws numbers evenly from [0, 1)", () => {
    const counts = Array.from({ length: 10 }, () => 0);
    for (let draw = 0; draw < 10_000; draw++) {
      const tenth = Math.floor(host.random.unit() * 10);
      counts[tenth] = (counts[tenth] ?? Number.NaN) + 1;
    }
    expect(counts).toHaveLength(10);
    for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  });
});
