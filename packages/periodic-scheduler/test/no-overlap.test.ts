import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { expect, test } from "vitest";

interface Seen {
  readonly mostAtOnce: number;
  readonly siblingRunCount: number;
}

type Schedule = (body: () => unknown, everyMs: number, name: string) => void;

/** A body that takes three intervals, one that never settles, one that throws, and a sibling that is to be harmed. */
async function crowd(host: VirtualHost, schedule: Schedule): Promise<Seen> {
  let runningCount = 0;
  let mostAtOnce = 0;
  let siblingRunCount = 0;
  const slow = async (): Promise<void> => {
    mostAtOnce = Math.max(mostAtOnce, ++runningCount);
    await new Promise<void>((resolve) => host.timers.after(300, resolve));
    runningCount--;
  };
  schedule(slow, 100, "slow");
  schedule(() => new Promise(() => {}), 100, "never settles");
  schedule(
    () => {
      throw new Error("broken task");
    },
    100,
    "throws",
  );
  schedule(() => void siblingRunCount++, 100, "sibling");
  await host.advance(1_000);
  return { mostAtOnce, siblingRunCount };
}

test("SCHED-1: a task never overlaps itself, and no slow, stuck or failing task delays another", async () => {
  const host = virtualHost();
  const errors: unknown[] = [];
  const scheduler: PeriodicScheduler = createPeriodicScheduler({ host, onError: (error) => void errors.push(error) });
  const seen = await crowd(host, (body, everyMs, name) => void scheduler.schedule(body, everyMs, { name }));
  expect(seen).toEqual({ mostAtOnce: 1, siblingRunCount: 10 });
  expect(errors).toHaveLength(10);
  await scheduler.close();
  await host.advance(1_000);
  expect(host.pendingTimerCount()).toBe(0);
});

/** The naive scheduler: one loop that awaits each body, or one that does not and re-arms at a fixed rate. */
function naive(host: VirtualHost, awaitsBodies: boolean): { schedule: Schedule; stop(): void } {
  const tasks: { body: () => unknown; everyMs: number; dueMs: number }[] = [];
  let isStopped = false;
  const tick = async (): Promise<void> => {
    for (const task of tasks) {
      if (host.clock.monotonicMs() < task.dueMs) continue;
      task.dueMs += task.everyMs;
      try {
        const answer = task.body();
        if (awaitsBodies) await answer;
      } catch {
        // Only the order of runs is looked at here.
      }
    }
    if (!isStopped) host.timers.after(10, () => void tick());
  };
  host.timers.after(10, () => void tick());
  return {
    schedule: (body, everyMs) => void tasks.push({ body, everyMs, dueMs: host.clock.monotonicMs() + everyMs }),
    stop: () => void (isStopped = true),
  };
}

test("SCHED-1 control: without waiting for a run to settle it fails, the slow task overlaps itself", async () => {
  const host = virtualHost();
  const { schedule, stop } = naive(host, false);
  expect((await crowd(host, schedule)).mostAtOnce).toBeGreaterThan(1);
  stop();
  await host.advance(1_000);
});

test("SCHED-1 control: without a promise of its own for each body it fails, one stuck body stops the sibling", async () => {
  const host = virtualHost();
  const { schedule, stop } = naive(host, true);
  expect((await crowd(host, schedule)).siblingRunCount).toBeLessThan(2);
  stop();
  await host.advance(1_000);
});
