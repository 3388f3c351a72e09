import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { PeriodicHandle } from "@turnkeeper/periodic-scheduler";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, test } from "vitest";

test("a body that answers false, at once or later, has run for the last time", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const atOnce = scheduler.schedule(() => false, 100, { name: "at once" });
  const later = scheduler.schedule(async () => false, 100, { name: "later" });
  await host.advance(1_000);
  expect([atOnce.runCount, later.runCount]).toEqual([1, 1]);
  expect([atOnce.active, later.active]).toEqual([false, false]);
  expect(host.pendingTimerCount()).toBe(0);
});

test("cancel resolves at once and lets the run in flight go on, which is not queued again", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  let finishedCount = 0;
  const body = async (): Promise<void> => {
    await new Promise<void>((resolve) => host.timers.after(200, resolve));
    finishedCount++;
  };
  const handle = scheduler.schedule(body, 100, { name: "long" });
  await host.advance(100);
  await handle.cancel();
  expect([handle.active, finishedCount]).toEqual([false, 0]);
  await host.advance(1_000);
  expect([handle.runCount, finishedCount]).toEqual([1, 1]);
  expect(host.pendingTimerCount()).toBe(0);
});

test("cancel with waitMs resolves when the run in flight has settled", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const body = (): Promise<void> => new Promise((resolve) => void host.timers.after(200, resolve));
  const handle = scheduler.schedule(body, 100, { name: "long" });
  await host.advance(100);
  let resolvedAtMs: number | undefined;
  const cancelled = handle.cancel({ waitMs: 2_000 }).then(() => (resolvedAtMs = host.clock.monotonicMs()));
  await host.advance(150);
  expect(resolvedAtMs).toBeUndefined();
  await host.advance(100);
  await cancelled;
  expect(resolvedAtMs).toBe(300);
  expect(host.pendingTimerCount()).toBe(0);
});

test("cancel with waitMs does not wait longer than that for a run that never settles", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const handle = scheduler.schedule(() => new Promise(() => {}), 100, { name: "stuck" });
  await host.advance(100);
  let isResolved = false;
  void handle.cancel({ waitMs: 1_000 }).then(() => (isResolved = true));
  await host.advance(999);
  expect(isResolved).toBe(false);
  await host.advance(1);
  expect(isResolved).toBe(true);
  expect(host.pendingTimerCount()).toBe(0);
});

test("a body that cancels itself does not wait for itself", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  let resolvedAtMs: number | undefined;
  const handle: PeriodicHandle = scheduler.schedule(
    async () => {
      await handle.cancel({ waitMs: 60_000 });
      resolvedAtMs = host.clock.monotonicMs();
    },
    100,
    { name: "self" },
  );
  await host.advance(100);
  expect(resolvedAtMs).toBe(100);
  expect(handle.active).toBe(false);
  expect(host.pendingTimerCount()).toBe(0);
});

test("cancelling again, or after the end, changes nothing", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const handle = scheduler.schedule(() => {}, 100, { name: "one" });
  await handle.cancel();
  await handle.cancel({ waitMs: 1_000 });
  await host.advance(1_000);
  expect(handle.runCount).toBe(0);
});

test("a task cancelled by another of the same burst does not run", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const handles: PeriodicHandle[] = [];
  handles.push(scheduler.schedule(() => handles[1]?.cancel(), 100, { name: "first" }));
  handles.push(scheduler.schedule(() => {}, 100, { name: "second" }));
  await host.advance(1_000);
  expect(handles[1]?.runCount).toBe(0);
  await scheduler.close();
});

test("close ends every task, refuses new ones, and leaves no timer; closing twice is safe", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const handles = [100, 200, 300].map((everyMs) => scheduler.schedule(() => {}, everyMs, { name: `${everyMs}` }));
  await host.advance(150);
  await scheduler.close();
  await scheduler.close();
  expect(handles.map((handle) => handle.active)).toEqual([false, false, false]);
  expect(host.pendingTimerCount()).toBe(0);
  const late = (): PeriodicHandle => scheduler.schedule(() => {}, 100, { name: "late" });
  expect(late).toThrow(/"late" was not scheduled/);
  expect(late).toThrow(expect.objectContaining({ code: "SCHEDULER_CLOSED" }));
});

test("a task that has ended keeps neither its body nor what the body refers to", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const handles: PeriodicHandle[] = [];
  const references: WeakRef<object>[] = [];
  for (let index = 0; index < 20; index++) {
    const large = { bytes: new Uint8Array(1_000) };
    references.push(new WeakRef(large));
    handles.push(scheduler.schedule(() => large.bytes.length, 100, { name: `task ${index}` }));
  }
  await host.advance(100);
  await scheduler.close();
  await host.settle();
  setFlagsFromString("--expose-gc");
  runInNewContext("gc()");
  expect(references.filter((reference) => reference.deref() !== undefined).length).toBeLessThan(2);
});
