import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createPeriodicScheduler, sharedScheduler } from "@turnkeeper/periodic-scheduler";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, test, vi } from "vitest";

test("however many tasks there are, one timer is pending, and none when all have ended", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const handles = Array.from({ length: 130 * 3 }, (_, index) =>
    scheduler.schedule(() => {}, 15_000 + (index % 3) * 15_000, { name: `task ${index}` }),
  );
  expect(host.pendingTimerCount()).toBe(1);
  await host.advance(60_000);
  expect(host.pendingTimerCount()).toBe(1);
  for (const handle of handles) await handle.cancel();
  expect(host.pendingTimerCount()).toBe(0);
});

test("that timer is set to keep no process alive", async () => {
  const host = virtualHost();
  const after = vi.spyOn(host.timers, "after");
  const scheduler = createPeriodicScheduler({ host });
  scheduler.schedule(() => {}, 1_000, { name: "one" });
  expect(after.mock.calls.map(([, , options]) => options)).toEqual([{ keepAlive: false }]);
  await scheduler.close();
});

test("the shared scheduler is one in a process, for a second copy of the package too", async () => {
  const first = sharedScheduler();
  expect(sharedScheduler()).toBe(first);
  vi.resetModules();
  const copy = await import("@turnkeeper/periodic-scheduler");
  expect(copy.sharedScheduler).not.toBe(sharedScheduler);
  expect(copy.sharedScheduler()).toBe(first);
  expect("close" in first).toBe(false);
});

test("scheduled tasks alone do not keep a process alive", async () => {
  const script = fileURLToPath(new URL("processes/only-timers.ts", import.meta.url));
  const node = ["--import", "tsx", "--conditions=@turnkeeper/source", script];
  // The interval is a minute: had it kept the process, this would run into the time limit.
  const { stdout } = await promisify(execFile)(process.execPath, node, { timeout: 20_000 });
  expect(Number(stdout.trim())).toBeLessThanOrEqual(1);
});
