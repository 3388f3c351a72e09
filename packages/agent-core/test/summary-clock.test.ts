import { virtualHost } from "@turnkeeper/kernel/testing";
import { describe, expect, it } from "vitest";
import { startSummaryClock } from "../src/compaction/summary-clock.ts";

const silenceMs = 1000;

describe("the clock of a summary", () => {
  it("runs out where nothing comes for its time", async () => {
    const host = virtualHost();
    using clock = startSummaryClock(host, new AbortController().signal, silenceMs);
    await host.advance(silenceMs - 1);
    expect(clock.signal.aborted).toBe(false);
    await host.advance(1);
    expect([clock.signal.aborted, clock.hasRunOut]).toEqual([true, true]);
    expect(host.pendingTimerCount()).toBe(0);
  });

  it("does not where something came while nobody could read it, and the time ran out with that", async () => {
    const host = virtualHost();
    const clock = startSummaryClock(host, new AbortController().signal, silenceMs);
    // Armed behind the clock's own timer, and so read behind it: as in a process that was stopped meanwhile.
    host.timers.after(silenceMs, () => clock.progress());
    await host.advance(2 * silenceMs - 1);
    expect(clock.signal.aborted).toBe(false);
    await host.advance(1);
    expect(clock.hasRunOut).toBe(true);
    clock[Symbol.dispose]();
    expect(host.pendingTimerCount()).toBe(0);
  });

  it("runs out after five times as long, however much comes", async () => {
    const host = virtualHost();
    using clock = startSummaryClock(host, new AbortController().signal, silenceMs);
    for (let step = 1; step < 10; step++) {
      await host.advance(silenceMs / 2);
      clock.progress();
    }
    expect(clock.signal.aborted).toBe(false);
    await host.advance(silenceMs / 2);
    expect(clock.hasRunOut).toBe(true);
  });
});
