import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, test, vi } from "vitest";

test("a body that throws or rejects is reported with its name, and runs again", async () => {
  const host = virtualHost();
  const reported: [string, string][] = [];
  const scheduler = createPeriodicScheduler({
    host,
    onError: (error, name) => void reported.push([name, error instanceof Error ? error.message : "?"]),
  });
  const throwing = (): never => {
    throw new Error("thrown");
  };
  const handles = [
    scheduler.schedule(throwing, 100, { name: "throws" }),
    scheduler.schedule(async () => throwing(), 100, { name: "rejects" }),
  ];
  await host.advance(300);
  expect(handles.map((handle) => handle.runCount)).toEqual([3, 3]);
  expect(reported.filter(([name]) => name === "throws")).toHaveLength(3);
  expect(reported.filter(([name]) => name === "rejects")).toHaveLength(3);
  await scheduler.close();
});

test("SCHED-1: an answer that settles and then throws counts once, and delays nobody", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host, onError: () => {} }, { slackMs: 0 });
  // What a broken promise library hands out.
  const answer = Promise.resolve();
  vi.spyOn(answer, "then").mockImplementation((resolve) => {
    void resolve?.();
    throw new Error("thrown behind its own answer");
  });
  const odd = scheduler.schedule(() => answer, 100, { name: "odd" });
  const other = scheduler.schedule(() => {}, 100, { name: "other" });
  await host.advance(1_000);
  expect([odd.runCount, other.runCount]).toEqual([10, 10]);
  await scheduler.close();
  expect(host.pendingTimerCount()).toBe(0);
});

test("without a reporter a failure becomes a process warning, so it is never silent", async () => {
  const host = virtualHost();
  const emitWarning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const scheduler = createPeriodicScheduler({ host });
  scheduler.schedule(() => Promise.reject(new Error("no disk")), 100, { name: "beat" });
  await host.advance(100);
  expect(emitWarning).toHaveBeenCalledTimes(1);
  const [message, options] = emitWarning.mock.calls[0] ?? [];
  expect(message).toContain('"beat"');
  expect(options).toMatchObject({ code: "PERIODIC_TASK_FAILED", detail: expect.stringContaining("no disk") });
  await scheduler.close();
});

test("a reporter that throws stops nobody", async () => {
  const host = virtualHost();
  const emitWarning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const scheduler = createPeriodicScheduler({
    host,
    onError: () => {
      throw new Error("broken reporter");
    },
  });
  const failing = scheduler.schedule(() => Promise.reject(new Error("broken task")), 100, { name: "failing" });
  const sibling = scheduler.schedule(() => {}, 100, { name: "sibling" });
  await host.advance(300);
  expect([failing.runCount, sibling.runCount]).toEqual([3, 3]);
  expect(emitWarning).toHaveBeenCalledTimes(3);
  await scheduler.close();
});
