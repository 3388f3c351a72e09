import { turnLivenessDefaults } from "@turnkeeper/turn-liveness";
import { describe, expect, it } from "vitest";
import { makeScene, settings } from "./scene.ts";

const { timeoutMs, pollMs } = settings;

describe("a declared wait", () => {
  it("carries its own bound: a silent tool of forty minutes is not stopped", async () => {
    const minuteMs = 60_000;
    const scene = makeScene({ settings: turnLivenessDefaults });
    scene.clock.progress("tool", "shell");
    const wait = scene.clock.declareWait({ kind: "tool", name: "shell", boundMs: 45 * minuteMs });
    await scene.virtual.advance(40 * minuteMs);
    expect(scene.events).toEqual([]);
    wait[Symbol.dispose]();
    scene.clock.progress("tool", "shell");
    await scene.virtual.advance(9 * minuteMs);
    expect(scene.events).toEqual([]);
    expect(await scene.end()).toBe(0);
  });

  it("rule 7.17: expires by itself, within two polls of its bound", async () => {
    const scene = makeScene();
    scene.clock.declareWait({ kind: "approval", name: "shell", boundMs: 5000 });
    await scene.virtual.advance(5000 - 1);
    expect(scene.events).toEqual([]);
    await scene.virtual.advance(2 * pollMs);
    expect(scene.isPublished()).toBe(true);
    expect(scene.observations[0]?.openWaits).toEqual([
      expect.objectContaining({ kind: "approval", name: "shell", boundMs: 5000 }),
    ]);
    expect(scene.observations[0]?.openWaits[0]?.endsInMs).toBeLessThanOrEqual(0);
    expect(await scene.end()).toBe(0);
  });

  it("rule 7.17: with several, the latest end counts, in whatever order they end", async () => {
    for (const bounds of [
      [2000, 7000],
      [7000, 2000],
    ]) {
      const scene = makeScene();
      for (const [index, boundMs] of bounds.entries()) {
        scene.clock.declareWait({ kind: "child", name: `worker ${index}`, boundMs });
      }
      await scene.virtual.advance(7000 - 1);
      expect(scene.events).toEqual([]);
      await scene.virtual.advance(2 * pollMs);
      expect(scene.isPublished()).toBe(true);
      expect(await scene.end()).toBe(0);
    }
  });

  it("one that is over counts no more, and its end is no progress", async () => {
    const scene = makeScene();
    const wait = scene.clock.declareWait({ kind: "model", name: "slow", boundMs: 60_000 });
    await scene.virtual.advance(5000);
    wait[Symbol.dispose]();
    wait[Symbol.dispose]();
    await scene.virtual.advance(2 * pollMs);
    expect(scene.isPublished()).toBe(true);
    expect(await scene.end()).toBe(0);
  });

  it("one shorter than the turn's own bound takes nothing away from it", async () => {
    const scene = makeScene();
    scene.clock.declareWait({ kind: "tool", name: "quick", boundMs: timeoutMs / 10 });
    await scene.virtual.advance(timeoutMs - 1);
    expect(scene.events).toEqual([]);
    expect(await scene.end()).toBe(0);
  });

  it("counts anew from any progress: its bound is one of silence", async () => {
    const scene = makeScene();
    using _wait = scene.clock.declareWait({ kind: "model", name: "slow", boundMs: 5000 });
    await scene.virtual.advance(4000);
    scene.clock.progress("model", "delta");
    await scene.virtual.advance(4000);
    expect(scene.events).toEqual([]);
    expect(await scene.end()).toBe(0);
  });

  it("has its whole bound also when it begins long after the last progress, the first time and again", async () => {
    const scene = makeScene();
    for (let step = 0; step < 2; step++) {
      scene.clock.progress("tool");
      await scene.virtual.advance(timeoutMs - 2 * pollMs);
      using _wait = scene.clock.declareWait({ kind: "tool", name: "shell", boundMs: 5000 });
      await scene.virtual.advance(5000 - 1);
      expect(scene.events).toEqual([]);
    }
    expect(await scene.end()).toBe(0);
  });

  it("declared again without progress in between is a retry and gets no time of its own", async () => {
    const scene = makeScene();
    let silenceMs = 0;
    while (!scene.isPublished() && silenceMs < 60_000) {
      using _attempt = scene.clock.declareWait({ kind: "model", name: "failing", boundMs: 5000 });
      await scene.virtual.advance(pollMs);
      silenceMs += pollMs;
    }
    expect(silenceMs).toBeGreaterThanOrEqual(5000);
    expect(silenceMs).toBeLessThanOrEqual(5000 + 2 * pollMs);
    expect(await scene.end()).toBe(0);
  });

  it("declared again after progress is a new wait", async () => {
    const scene = makeScene();
    for (let step = 0; step < 5; step++) {
      scene.clock.progress("tool");
      using _wait = scene.clock.declareWait({ kind: "tool", name: "shell", boundMs: 5000 });
      await scene.virtual.advance(4900);
    }
    expect(scene.events).toEqual([]);
    expect(await scene.end()).toBe(0);
  });

  it("ends with its scope also when the body throws", () => {
    const { clock } = makeScene({ settings: "off" });
    const body = (): void => {
      using _wait = clock.declareWait({ kind: "tool", name: "shell", boundMs: 5000 });
      expect(clock.openWaits).toEqual([{ kind: "tool", name: "shell", boundMs: 5000, endsInMs: 5000 }]);
      throw new Error("tool failed");
    };
    expect(body).toThrow("tool failed");
    expect(clock.openWaits).toEqual([]);
  });

  it("without a finite bound above 0 is refused: it would hide a stuck turn for ever", () => {
    const { clock } = makeScene({ settings: "off" });
    for (const boundMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      const declare = (): Disposable => clock.declareWait({ kind: "tool", name: "shell", boundMs });
      expect(declare).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
      expect(declare).toThrow(/tool shell must be a finite number/);
    }
    expect(clock.openWaits).toEqual([]);
  });
});

describe("the evidence for a renewal", () => {
  it("is progress within the bound or a declared wait inside its own, and nothing else", async () => {
    const { clock, virtual } = makeScene({ settings: "off" });
    clock.progress("model");
    expect(clock.hasEvidence(timeoutMs)).toBe(true);
    await virtual.advance(timeoutMs - 1);
    expect(clock.hasEvidence(timeoutMs)).toBe(true);
    await virtual.advance(1);
    expect(clock.hasEvidence(timeoutMs)).toBe(false);
    using _wait = clock.declareWait({ kind: "tool", name: "shell", boundMs: 5000 });
    expect(clock.hasEvidence(timeoutMs)).toBe(true);
    await virtual.advance(5000);
    expect(clock.hasEvidence(timeoutMs)).toBe(false);
    clock.progress("tool");
    expect(clock.hasEvidence(timeoutMs)).toBe(true);
  });
});
