import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { PeriodicHandle } from "@turnkeeper/periodic-scheduler";
import { virtualHost } from "@turnkeeper/kernel/testing";
import * as fc from "fast-check";
import { expect, test } from "vitest";

const taskPlan = fc.record({
  everyMs: fc.integer({ min: 1, max: 400 }),
  bodyMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 500 })),
  ending: fc.constantFrom("fine", "throws", "rejects", "false on the third run", "never settles"),
  cancelAtMs: fc.option(fc.integer({ min: 0, max: 3_000 }), { nil: undefined }),
});

test("whatever bodies do: no overlap, an interval between end and start, nobody starves, nothing is left", async () => {
  const reached = { ran: 0, failed: 0, endedByFalse: 0, cancelledInRun: 0, stuck: 0 };
  const plans = fc.record({
    slackMs: fc.constantFrom(0, 1, 50),
    tasks: fc.array(taskPlan, { minLength: 1, maxLength: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(plans, async ({ slackMs, tasks }) => {
      const host = virtualHost();
      const scheduler = createPeriodicScheduler({ host, onError: () => void reached.failed++ }, { slackMs });
      const handles: PeriodicHandle[] = [];
      for (const [index, plan] of tasks.entries()) {
        let isRunning = false;
        const ownSlackMs = plan.everyMs >= 20 * slackMs ? 2 * slackMs : slackMs;
        let freeSinceMs = host.clock.monotonicMs();
        const body = (): unknown => {
          expect(isRunning).toBe(false);
          const nowMs = host.clock.monotonicMs();
          expect(nowMs - freeSinceMs).toBeGreaterThanOrEqual(plan.everyMs - Math.min(ownSlackMs, plan.everyMs / 2));
          expect(nowMs - freeSinceMs).toBeLessThanOrEqual(plan.everyMs + ownSlackMs);
          reached.ran++;
          isRunning = true;
          const end = (): unknown => {
            isRunning = false;
            freeSinceMs = host.clock.monotonicMs();
            if (plan.ending === "throws" || plan.ending === "rejects") throw new Error("as planned");
            const isLast = plan.ending === "false on the third run" && handles[index]?.runCount === 3;
            if (isLast) reached.endedByFalse++;
            return !isLast;
          };
          if (plan.ending === "never settles") {
            reached.stuck++;
            return new Promise(() => {});
          }
          if (plan.bodyMs === 0 && plan.ending === "throws") return end();
          if (plan.bodyMs === 0) return Promise.resolve().then(end);
          return new Promise<void>((resolve) => void host.timers.after(plan.bodyMs, resolve)).then(end);
        };
        const handle = scheduler.schedule(body, plan.everyMs, { name: `task ${index}` });
        handles.push(handle);
        if (plan.cancelAtMs !== undefined) {
          host.timers.after(plan.cancelAtMs, () => {
            if (isRunning) reached.cancelledInRun++;
            void handle.cancel();
          });
        }
      }
      await host.advance(3_000);
      const mustHaveRun = handles.filter((_, index) => tasks[index]?.cancelAtMs === undefined);
      for (const handle of mustHaveRun) expect(handle.runCount).toBeGreaterThan(0);
      await scheduler.close();
      const countAtClose = handles.map((handle) => handle.runCount);
      await host.advance(1_000);
      expect(handles.map((handle) => handle.runCount)).toEqual(countAtClose);
      expect(host.pendingTimerCount()).toBe(0);
    }),
    { numRuns: 60 },
  );
  for (const count of Object.values(reached)) expect(count).toBeGreaterThan(5);
}, 60_000);
