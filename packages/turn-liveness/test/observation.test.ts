import { watchTurn } from "@turnkeeper/turn-liveness";
import { describe, expect, it, vi } from "vitest";
import { makeScene, settings } from "./scene.ts";

const { timeoutMs, pollMs } = settings;
const stallMs = timeoutMs + 2 * pollMs;

describe("what an observer is told", () => {
  it("a stall that is declined at ten looks is observed once; the next one once more", async () => {
    let attempts = 0;
    const scene = makeScene({
      turn: {
        commitAbort: async () => {
          attempts++;
          return false;
        },
      },
    });
    await scene.virtual.advance(timeoutMs + 12 * pollMs);
    expect(attempts).toBeGreaterThanOrEqual(10);
    expect(scene.events).toEqual(["stalled"]);
    scene.clock.progress("model");
    await scene.virtual.advance(timeoutMs + 12 * pollMs);
    expect(scene.events).toEqual(["stalled", "resumed", "stalled"]);
    expect(await scene.end()).toBe(0);
  });

  it("callbacks that throw are reported and change nothing: the abort happens, the lease is withdrawn", async () => {
    const broken = (): never => {
      throw new Error("terminal closed");
    };
    const scene = makeScene({ turn: { onStall: broken, onAborted: broken } });
    await scene.virtual.advance(stallMs);
    expect(scene.events).toEqual(["published", "withdrawn"]);
    expect(scene.faults.map((fault) => [fault.code, fault.context])).toEqual([
      ["CALLBACK_FAILED", { callback: "onStall" }],
      ["CALLBACK_FAILED", { callback: "onAborted" }],
    ]);
    expect(await scene.end()).toBe(0);
  });

  it("a fault that nobody takes, or that its taker drops, becomes a process warning", async () => {
    const emitWarning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const scene = makeScene({ settings: "off" });
    const onStall = (): never => {
      throw new Error("terminal closed");
    };
    const facts = { commitAbort: async () => true, onStall, onAborted: () => {} };
    const onFault = (): never => {
      throw new Error("reporter broken");
    };
    const { clock, scheduler, host } = scene;
    watchTurn({ clock, scheduler, host }, settings, { name: "first", ...facts });
    watchTurn({ clock, scheduler, host, onFault }, settings, { name: "second", ...facts });
    await scene.virtual.advance(stallMs + pollMs);
    expect(emitWarning.mock.calls.map(([warning]) => warning)).toEqual([
      "onStall of the watch over turn first threw: terminal closed. The watch went on.",
      "onStall of the watch over turn second threw: terminal closed. The watch went on.",
    ]);
    expect(await scene.end()).toBe(0);
  });

  it("a long detail is cut to a line", () => {
    const { clock } = makeScene({ settings: "off" });
    clock.progress("tool", "x".repeat(500));
    const { lastProgress, detail } = clock.snapshot();
    expect(lastProgress).toHaveLength(120);
    expect(lastProgress.endsWith("…")).toBe(true);
    expect(detail).toHaveLength(500);
  });
});

describe("an abort that fails", () => {
  it("rule 7.17: is tried at every look, publishes nothing, and is reported after three times", async () => {
    let attempts = 0;
    const scene = makeScene({
      turn: {
        commitAbort: async () => {
          attempts++;
          throw new Error("fence broken");
        },
      },
    });
    await scene.virtual.advance(timeoutMs + 3 * pollMs);
    const firstAttempts = attempts;
    expect(firstAttempts).toBeGreaterThanOrEqual(3);
    await scene.virtual.advance(5 * pollMs);
    expect(attempts).toBe(firstAttempts + 5);
    expect(scene.events).toEqual(["stalled"]);
    expect(scene.isRenewing()).toBe(true);
    expect(scene.faults.map((fault) => [fault.code, fault.context])).toEqual([
      ["ABORT_FAILING", { name: "session-1", count: 3 }],
    ]);
    expect(scene.faults[0]?.message).toContain("fence broken");
    expect(await scene.end()).toBe(0);
  });

  it("is counted anew once the turn has moved", async () => {
    const scene = makeScene({
      turn: {
        commitAbort: async () => {
          throw new Error("fence broken");
        },
      },
    });
    await scene.virtual.advance(timeoutMs + pollMs);
    scene.clock.progress("model");
    await scene.virtual.advance(timeoutMs + pollMs);
    expect(scene.faults).toEqual([]);
    await scene.virtual.advance(2 * pollMs);
    expect(scene.faults).toHaveLength(1);
    expect(await scene.end()).toBe(0);
  });

  it("that answers too late does not end the watch: its claim is void by then, and it is tried anew", async () => {
    const answers: boolean[] = [];
    const late: (() => void)[] = [];
    const scene = makeScene({
      turn: {
        commitAbort: (claim) =>
          new Promise((resolve) => {
            late.push(() => {
              answers.push(claim.consume());
              resolve(answers.at(-1) ?? false);
            });
          }),
      },
    });
    await scene.virtual.advance(stallMs + 30_000 - 2 * pollMs);
    await scene.virtual.advance(pollMs / 2);
    expect(late).toHaveLength(1);
    late[0]?.();
    await scene.virtual.settle();
    expect(answers).toEqual([false]);
    await scene.virtual.advance(pollMs);
    expect(late).toHaveLength(2);
    late[1]?.();
    await scene.virtual.settle();
    expect(scene.events).toEqual(["stalled", "aborted", "withdrawn"]);
    expect(await scene.end()).toBe(0);
  });

  it("by silence counts like one that throws", async () => {
    const scene = makeScene({ turn: { commitAbort: () => new Promise(() => {}) } });
    await scene.virtual.advance(stallMs + 3 * (30_000 + pollMs));
    expect(scene.faults.map((fault) => fault.code)).toEqual(["ABORT_FAILING"]);
    expect(scene.faults[0]?.message).toContain("no answer within 30 s");
    expect(await scene.end()).toBe(0);
  });

  it("by the end of the watch does not count", async () => {
    let attempts = 0;
    const commitAbort = async (): Promise<boolean> => {
      if (++attempts < 3) throw new Error("fence broken");
      return new Promise(() => {});
    };
    const scene = makeScene({ turn: { commitAbort } });
    await scene.virtual.advance(stallMs + 2 * pollMs);
    expect(attempts).toBe(3);
    expect(await scene.end()).toBe(0);
    expect(scene.faults).toEqual([]);
  });
});
