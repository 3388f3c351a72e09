import { CodedError, systemHost } from "@turnkeeper/kernel";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { longestTimerMs } from "../src/delay.ts";

const { timers } = systemHost;

describe("a timer of the system host", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  });
  afterEach(() => {
    const leftCount = vi.getTimerCount();
    vi.useRealTimers();
    expect(leftCount).toBe(0);
  });

  test("fires once, after its delay, never synchronously", () => {
    const fired = vi.fn();
    timers.after(0, fired);
    expect(fired).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledOnce();

    const later = vi.fn();
    timers.after(1_000, later);
    vi.advanceTimersByTime(999);
    expect(later).not.toHaveBeenCalled();
    vi.advanceTimersByTime(10_000);
    expect(later).toHaveBeenCalledOnce();
  });

  test("refuses what Node would turn into a timer that fires at once", () => {
    for (const ms of [Number.NaN, Infinity, -Infinity, -1, -Number.EPSILON]) {
      const refusal = (() => {
        try {
          timers.after(ms, () => undefined);
          return undefined;
        } catch (error) {
          return error;
        }
      })();
      expect(CodedError.is(refusal, "TIMER_INVALID")).toBe(true);
      expect((refusal as Error).message).toContain(String(ms));
    }
  });

  test("is chained beyond 2^31 ms, where one Node timer would fire at once", () => {
    const fired = vi.fn();
    const ms = 2.5 * longestTimerMs;
    timers.after(ms, fired);
    vi.advanceTimersByTime(longestTimerMs);
    vi.advanceTimersByTime(longestTimerMs);
    vi.advanceTimersByTime(ms - 2 * longestTimerMs - 1);
    expect(fired).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledOnce();
  });

  test("is one Node timer up to the longest it can carry", () => {
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    timers.after(longestTimerMs, () => undefined);
    vi.advanceTimersByTime(longestTimerMs);
    expect(setTimer.mock.calls.map(([, ms]) => ms)).toEqual([longestTimerMs]);
  });

  test("is cancelled in any link of its chain, and cancelling again or late does nothing", () => {
    const fired = vi.fn();
    const cancelFirst = timers.after(3 * longestTimerMs, fired);
    cancelFirst();
    const cancelSecond = timers.after(3 * longestTimerMs, fired);
    vi.advanceTimersByTime(longestTimerMs + 1);
    cancelSecond();
    cancelSecond();
    vi.advanceTimersByTime(3 * longestTimerMs);
    expect(fired).not.toHaveBeenCalled();

    const cancelLate = timers.after(1, fired);
    vi.advanceTimersByTime(1);
    cancelLate();
    expect(fired).toHaveBeenCalledOnce();
  });
});
