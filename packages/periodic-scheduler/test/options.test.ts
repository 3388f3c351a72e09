import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { CodedError } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { expect, test } from "vitest";

function rejected(act: () => unknown): CodedError | undefined {
  try {
    act();
  } catch (error) {
    if (CodedError.is(error)) return error;
    throw error;
  }
  return undefined;
}

test("an interval that is not a finite number above 0 is refused, and nothing is scheduled", () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  for (const everyMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    const error = rejected(() => scheduler.schedule(() => {}, everyMs, { name: "beat" }));
    expect(error?.code).toBe("OPTION_INVALID");
    expect(error?.message).toContain(`got ${everyMs}`);
    expect(error?.message).toContain('"beat"');
  }
  expect(host.pendingTimerCount()).toBe(0);
});

test("a bad slack and an unknown option are refused by name", () => {
  const host = virtualHost();
  for (const slackMs of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(rejected(() => createPeriodicScheduler({ host }, { slackMs }))?.context).toEqual({ option: "slackMs" });
  }
  const misspelt: object = { slackMS: 10 };
  const error = rejected(() => createPeriodicScheduler({ host }, misspelt));
  expect([error?.code, error?.context]).toEqual(["OPTION_INVALID", { option: "slackMS" }]);
});

test("a wait for a cancelled run that is no finite time is refused", async () => {
  const host = virtualHost();
  const scheduler = createPeriodicScheduler({ host });
  const handle = scheduler.schedule(() => new Promise(() => {}), 100, { name: "stuck" });
  await host.advance(100);
  await expect(handle.cancel({ waitMs: Number.NaN })).rejects.toMatchObject({ code: "TIMER_INVALID" });
});
