import { virtualHost } from "@turnkeeper/kernel/testing";
import { describe, expect, it } from "vitest";
import { createCompressionFence, replaceWithSummary } from "@turnkeeper/compression-fence";

describe("admission of a commit", () => {
  it("a second commit is refused while one runs and admitted after it", () => {
    const fence = createCompressionFence({ host: virtualHost() });
    const first = fence.begin();
    expect(fence.begin()).toBeUndefined();
    expect(fence.refusal).toBe("committing");
    first?.finish();
    expect(fence.refusal).toBeUndefined();
    expect(fence.begin()).toBeDefined();
  });

  it("the late finish of an older commit leaves the newer one in flight", () => {
    const fence = createCompressionFence({ host: virtualHost() });
    const older = fence.begin();
    older?.finish();
    const newer = fence.begin();
    older?.finish();
    expect(fence.commitInFlight).toBe(true);
    newer?.[Symbol.dispose]();
    expect(fence.commitInFlight).toBe(false);
  });

  it("a summary that comes after the deadline is not committed", async () => {
    const host = virtualHost();
    const fence = createCompressionFence({ host }, { deadlineMs: 1000 });
    let applyCount = 0;
    const result = await replaceWithSummary(fence, {
      basis: 1,
      summarise: async () => host.advance(1000),
      apply: async () => ({ kind: "applied", applyCount: ++applyCount }),
    });
    expect(result).toEqual({ kind: "refused", why: "deadline" });
    expect(applyCount).toBe(0);
  });

  it("a deadline never ends a commit that has begun, and refuses for good once it has refused", async () => {
    const host = virtualHost();
    const fence = createCompressionFence({ host }, { deadlineMs: 1000 });
    await host.advance(999);
    const commit = fence.begin();
    await host.advance(5000);
    expect(fence.commitInFlight).toBe(true);
    commit?.finish();
    expect(fence.begin()).toBeUndefined();
    expect(fence.refusal).toBe("deadline");
  });

  it("the machine's sleep and a stepped wall clock do not make a summary late", () => {
    const host = virtualHost();
    const fence = createCompressionFence({ host }, { deadlineMs: 1000 });
    host.suspend(3_600_000);
    host.jumpWall(86_400_000);
    expect(fence.begin()).toBeDefined();
  });

  it("a fence closed beforehand costs no model call and changes nothing", async () => {
    const fence = createCompressionFence({ host: virtualHost() });
    fence.cancelPending();
    const calls: string[] = [];
    const result = await replaceWithSummary(fence, {
      basis: 1,
      summarise: async () => calls.push("summarise"),
      apply: async () => ({ kind: "applied", calls: calls.push("apply") }),
    });
    expect(result).toEqual({ kind: "refused", why: "cancelled" });
    expect(calls).toEqual([]);
  });

  it("a summary that finds another commit in flight is refused, not queued", async () => {
    const fence = createCompressionFence({ host: virtualHost() });
    const commit = fence.begin();
    const result = await replaceWithSummary(fence, {
      basis: 1,
      summarise: async () => "s",
      apply: async () => ({ kind: "applied" }),
    });
    expect(result).toEqual({ kind: "refused", why: "committing" });
    commit?.finish();
  });

  it("a summary begun while another commits may be committed when that one is over", async () => {
    const fence = createCompressionFence({ host: virtualHost() });
    const commit = fence.begin();
    const result = await replaceWithSummary(fence, {
      basis: 1,
      summarise: async () => commit?.finish(),
      apply: async () => ({ kind: "applied" }),
    });
    expect(result).toEqual({ kind: "applied" });
  });

  it("the commit is in flight for as long as the write takes", async () => {
    const fence = createCompressionFence({ host: virtualHost() });
    const result = await replaceWithSummary(fence, {
      basis: 1,
      summarise: async () => "s",
      apply: async () => {
        await Promise.resolve();
        return { kind: "applied", wasInFlight: fence.commitInFlight };
      },
    });
    expect(result).toEqual({ kind: "applied", wasInFlight: true });
    expect(fence.commitInFlight).toBe(false);
  });

  it("a write that fails frees the fence and its error comes out", async () => {
    const fence = createCompressionFence({ host: virtualHost() });
    const failing = replaceWithSummary(fence, {
      basis: 1,
      summarise: async () => "s",
      apply: async () => {
        expect(fence.commitInFlight).toBe(true);
        throw new Error("disk full");
      },
    });
    await expect(failing).rejects.toThrow("disk full");
    expect(fence.commitInFlight).toBe(false);
    expect(fence.begin()).toBeDefined();
  });

  it("an option that is unknown or out of range is refused by name", () => {
    const host = virtualHost();
    const attempt = (options: object) => () => createCompressionFence({ host }, options);
    for (const deadlineMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(attempt({ deadlineMs })).toThrow(/deadlineMs must be a finite number of milliseconds above 0, got/);
    }
    expect(attempt({ deadline: 5 })).toThrow(/option deadline must be absent/);
    expect(attempt({ deadlineMs: 0 })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });
});
