import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { virtualHost } from "@turnkeeper/kernel/testing";
import * as fc from "fast-check";
import { expect, test } from "vitest";

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("schedule" as const), everyMs: fc.integer({ min: 1, max: 40 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("cancel" as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 40 }) }) },
);

test("runs come as from a sorted list, through any mix of new and cancelled tasks", async () => {
  const reached = { cancelled: 0, ran: 0, tied: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (steps) => {
      const host = virtualHost();
      const scheduler = createPeriodicScheduler({ host }, { slackMs: 0 });
      const ran: string[] = [];
      const expected: string[] = [];
      // The model: a task runs once, at its due time; ties go by order of scheduling.
      let model: { readonly name: string; readonly dueMs: number; readonly order: number; cancel(): void }[] = [];
      for (const [order, one] of steps.entries()) {
        const nowMs = host.clock.monotonicMs();
        if (one.kind === "schedule") {
          const name = `task ${order}`;
          const once = (): boolean => {
            ran.push(`${name} at ${host.clock.monotonicMs()}`);
            return false;
          };
          const handle = scheduler.schedule(once, one.everyMs, { name });
          model.push({ name, dueMs: nowMs + one.everyMs, order, cancel: () => void handle.cancel() });
        } else if (one.kind === "cancel") {
          const victim = model[one.pick % (model.length || 1)];
          victim?.cancel();
          model = model.filter((task) => task !== victim);
          if (victim) reached.cancelled++;
        } else {
          await host.advance(one.ms);
          const due = model.filter((task) => task.dueMs <= nowMs + one.ms);
          const inOrder = due.toSorted((left, right) => left.dueMs - right.dueMs || left.order - right.order);
          for (const task of inOrder) expected.push(`${task.name} at ${task.dueMs}`);
          reached.tied += due.length - new Set(due.map((task) => task.dueMs)).size;
          reached.ran += due.length;
          model = model.filter((task) => task.dueMs > nowMs + one.ms);
        }
        expect(ran).toEqual(expected);
      }
      for (const task of model) task.cancel();
      expect(host.pendingTimerCount()).toBe(0);
    }),
    { numRuns: 100 },
  );
  for (const count of Object.values(reached)) expect(count).toBeGreaterThan(50);
}, 60_000);
