import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, test } from "vitest";

test("the first run comes one interval after scheduling, the next one interval after the last settled", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host }, { slackMs: 0 });
  const startedAtMs: number[] = [];
  const body = async (): Promise<void> => {
    startedAtMs.push(host.clock.monotonicMs());
    await new Promise<void>((resolve) => host.timers.after(300, resolve));
  };
  scheduler.schedule(body, 100, { name: "slow" });
  await host.advance(1_000);
  expect(startedAtMs).toEqual([100, 500, 900]);
  await scheduler.close();
  await host.advance(300);
  expect(host.pendingTimerCount()).toBe(0);
});

test("a faster task runs more often, and ending it leaves the slower one alone", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const fast = scheduler.schedule(() => {}, 100, { name: "fast" });
  const slow = scheduler.schedule(() => {}, 500, { name: "slow" });
  await host.advance(1_000);
  expect([fast.runCount, slow.runCount]).toEqual([10, 2]);
  await fast.cancel();
  await host.advance(1_000);
  expect([fast.runCount, slow.runCount]).toEqual([10, 4]);
  await scheduler.close();
});

test.each([
  ["twenty times a second", 150, 200],
  ["ten times where each runs at most once in a second", 1_000, 100],
])("due times share slots, so many tasks wake the process at most %s", async (_often, everyMs, most) => {
  const host = virtualHost();
  let wakeUpCount = 0;
  const counting = {
    ...host,
    timers: {
      ...host.timers,
      after: (ms: number, fn: () => void) =>
        host.timers.after(ms, () => {
          wakeUpCount++;
          fn();
        }),
    },
  };
  const scheduler = createPeriodicScheduler({ host: counting });
  const handles = Array.from({ length: 500 }, (_, index) =>
    scheduler.schedule(() => {}, everyMs + index * 7, { name: `task ${index}` }),
  );
  await host.advance(10_000);
  expect(wakeUpCount).toBeLessThanOrEqual(most);
  expect(wakeUpCount).toBeGreaterThan(most / 2);
  for (const handle of handles) expect(handle.runCount).toBeGreaterThan(1);
  await scheduler.close();
});

test("slots delay a run but not the period: over a hundred periods the mean error is below a millisecond", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const startedAtMs: number[] = [];
  scheduler.schedule(() => void startedAtMs.push(host.clock.monotonicMs()), 333, { name: "odd" });
  await host.advance(333 * 101 + 50);
  const [first = 0] = startedAtMs;
  const last = startedAtMs[100] ?? 0;
  expect(Math.abs((last - first) / 100 - 333)).toBeLessThan(1);
  for (const atMs of startedAtMs) expect(atMs % 50).toBe(0);
  await scheduler.close();
});

test("a seldom task waits for each second slot, and does not hold up one that is due in the slot between", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const ran: string[] = [];
  const add = (name: string, everyMs: number): void => {
    scheduler.schedule(() => void ran.push(`${name} at ${host.clock.monotonicMs()}`), everyMs, { name });
  };
  add("seldom", 1_010);
  await host.advance(900);
  add("often", 120);
  await host.advance(200);
  expect(ran).toEqual(["often at 1050", "seldom at 1100"]);
  await scheduler.close();
});

test("runs missed while the process stood still are not made up", async () => {
  const host = virtualHost();
  let stoodStillMs = 0;
  const lagging = {
    ...host,
    clock: { ...host.clock, monotonicMs: () => host.clock.monotonicMs() + stoodStillMs },
  };
  const scheduler = createPeriodicScheduler({ host: lagging }, { slackMs: 0 });
  const handle = scheduler.schedule(() => {}, 100, { name: "beat" });
  await host.advance(50);
  stoodStillMs = 10_000;
  await host.advance(50);
  expect(handle.runCount).toBe(1);
  await host.advance(99);
  expect(handle.runCount).toBe(1);
  await host.advance(1);
  expect(handle.runCount).toBe(2);
  await scheduler.close();
});

test("tasks due together run in the order of their due times, then of their scheduling", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const ran: string[] = [];
  const add = (name: string, everyMs: number): void => {
    scheduler.schedule(() => void ran.push(name), everyMs, { name });
  };
  add("late", 149);
  add("first of two", 101);
  add("second of two", 101);
  add("early", 120);
  await host.advance(150);
  expect(ran).toEqual(["first of two", "second of two", "early", "late"]);
  await scheduler.close();
});

test("a large burst lets the event loop breathe every few milliseconds", async () => {
  const host = virtualHost();
  // Each look at the clock costs a tenth of a millisecond here, so a body takes its time as a real one would.
  let spentMs = 0;
  let ranCount = 0;
  const countAtWakeUps: number[] = [];
  const busy = {
    ...host,
    clock: { ...host.clock, monotonicMs: () => host.clock.monotonicMs() + (spentMs += 0.1) },
    timers: {
      ...host.timers,
      after: (ms: number, fn: () => void) =>
        host.timers.after(ms, () => {
          countAtWakeUps.push(ranCount);
          fn();
        }),
    },
  };
  const scheduler = createPeriodicScheduler({ host: busy }, { slackMs: 0 });
  for (let index = 0; index < 200; index++) {
    scheduler.schedule(() => ++ranCount < 0, 1_000, { name: `task ${index}` });
  }
  await host.advance(1_000);
  expect(ranCount).toBe(200);
  expect(countAtWakeUps.length).toBeGreaterThan(3);
  const ranPerWakeUp = countAtWakeUps.map((count, index) => count - (countAtWakeUps[index - 1] ?? 0));
  expect(Math.max(...ranPerWakeUp)).toBeLessThan(60);
});
