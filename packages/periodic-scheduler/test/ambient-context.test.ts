import { AsyncLocalStorage } from "node:async_hooks";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { systemHost } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, test } from "vitest";

test("a body sees the ambient context of its schedule call, in every run", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const context = new AsyncLocalStorage<string>();
  const seen: (string | undefined)[] = [];
  const body = async (): Promise<void> => {
    await Promise.resolve();
    seen.push(context.getStore());
  };
  context.run("turn 1", () => scheduler.schedule(body, 100, { name: "one" }));
  context.run("turn 2", () => scheduler.schedule(body, 100, { name: "two" }));
  scheduler.schedule(body, 100, { name: "none" });
  await context.run("somebody who advances time", () => host.advance(200));
  expect(seen).toEqual(["turn 1", "turn 2", undefined, "turn 1", "turn 2", undefined]);
  await scheduler.close();
});

test("the shared timer is armed in no task's context, so it keeps none", async () => {
  const context = new AsyncLocalStorage<string>();
  const armedIn: (string | undefined)[] = [];
  const host = {
    ...systemHost,
    timers: {
      ...systemHost.timers,
      after: (ms: number, fn: () => void, options: { keepAlive?: boolean } = {}) => {
        armedIn.push(context.getStore());
        return systemHost.timers.after(ms, fn, options);
      },
    },
  };
  const scheduler = createPeriodicScheduler({ host });
  context.run("turn 1", () => scheduler.schedule(() => {}, 1_000, { name: "one" }));
  context.run("turn 2", () => scheduler.schedule(() => {}, 500, { name: "two" }));
  expect(armedIn).toEqual([undefined, undefined]);
  await scheduler.close();
});
