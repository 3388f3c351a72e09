import * as fc from "fast-check";
import { watchTurn } from "@turnkeeper/turn-liveness";
import { describe, expect, it } from "vitest";
import { makeScene, settings } from "./scene.ts";
import type { Scene } from "./scene.ts";

const { timeoutMs, pollMs } = settings;

/** Progress ends at `lastMs`; answers after how much silence the stop was published, or `undefined` within 3 bounds. */
async function silenceUntilStopped(lastMs: number, renew: (scene: Scene) => void): Promise<number | undefined> {
  const scene = makeScene();
  const stepMs = 10;
  for (let atMs = 0; atMs < lastMs; atMs += stepMs) {
    scene.clock.progress("model");
    await scene.virtual.advance(Math.min(stepMs, lastMs - atMs));
  }
  scene.clock.progress("tool", "shell");
  let silenceMs = 0;
  while (!scene.isPublished() && silenceMs < 3 * timeoutMs) {
    await scene.virtual.advance(stepMs);
    silenceMs += stepMs;
    if (silenceMs % 500 === 0) renew(scene);
  }
  const wasPublished = scene.isPublished();
  expect(await scene.end()).toBe(0);
  return wasPublished ? silenceMs : undefined;
}

/** What a renewal does to the clock: nothing. */
const onlyTheLease = (): void => {};
/** The confusion behind the bug that this package exists for. */
const asProgress = (scene: Scene): void => scene.clock.progress("lease", "renewed");

describe("a turn that has stopped moving", () => {
  it("LIVE-1: a turn without progress for its bound is stopped within two polls, wherever between two polls it last moved", async () => {
    for (const lastMs of [0, 1, 50, 99, 100, 101, 1234]) {
      const silenceMs = await silenceUntilStopped(lastMs, onlyTheLease);
      expect(silenceMs).toBeGreaterThanOrEqual(timeoutMs);
      expect(silenceMs).toBeLessThanOrEqual(timeoutMs + 2 * pollMs);
    }
  });

  it("LIVE-1 control: without renewals kept apart from progress it fails: a stuck turn is renewed for ever", async () => {
    expect(await silenceUntilStopped(1234, asProgress)).toBeUndefined();
  });

  it("LIVE-1: the bound of a stuck turn holds for any settings, and any last progress", async () => {
    let stoppedCount = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          timeoutMs: fc.integer({ min: 1, max: 5000 }),
          pollMs: fc.integer({ min: 10, max: 700 }),
          lastMs: fc.integer({ min: 0, max: 900 }),
        }),
        async ({ lastMs, ...each }) => {
          const scene = makeScene({ settings: each });
          await scene.virtual.advance(lastMs);
          // A bound shorter than a poll may have passed before the first progress is even seen.
          scene.clock.progress("tool");
          await scene.virtual.advance(each.timeoutMs + 2 * each.pollMs);
          stoppedCount += scene.isPublished() ? 1 : 0;
          expect(await scene.end()).toBe(0);
          return scene.isPublished();
        },
      ),
      { numRuns: 100 },
    );
    expect(stoppedCount).toBeGreaterThanOrEqual(100);
  });

  it("the observation names the turn, its silence and what moved last", async () => {
    const scene = makeScene();
    scene.clock.progress("tool", "shell started");
    await scene.virtual.advance(timeoutMs + 2 * pollMs);
    expect(scene.observations).toEqual([
      expect.objectContaining({ name: "session-1", lastProgress: "tool: shell started", timeoutMs, openWaits: [] }),
    ]);
    expect(scene.observations[0]?.idleMs).toBeGreaterThanOrEqual(timeoutMs);
    expect(await scene.end()).toBe(0);
  });

  it("a turn that never moved at all is stopped like any other, its silence counted from the start of the watch", async () => {
    const scene = makeScene();
    await scene.virtual.advance(timeoutMs - 1);
    expect(scene.isPublished()).toBe(false);
    await scene.virtual.advance(1);
    expect(scene.isPublished()).toBe(true);
    expect(await scene.end()).toBe(0);
  });

  it("rule 7.16: first it is observed, then stopped, then said to be aborted, and only then is the lease withdrawn", async () => {
    const scene = makeScene();
    await scene.virtual.advance(timeoutMs + 2 * pollMs);
    expect(scene.events).toEqual(["stalled", "published", "aborted", "withdrawn"]);
    expect(await scene.end()).toBe(0);
  });

  it("a turn that ignores its stop earns no renewal after it", async () => {
    const scene = makeScene();
    let renewedAfterCount = 0;
    scene.scheduler.schedule(
      () => {
        if (!scene.isRenewing()) return false;
        if (scene.isPublished()) renewedAfterCount++;
        return true;
      },
      pollMs,
      { name: "renewal" },
    );
    await scene.virtual.advance(3 * timeoutMs);
    expect(scene.isPublished()).toBe(true);
    expect(renewedAfterCount).toBe(0);
    expect(await scene.end()).toBe(0);
  });

  it("silence from before the turn began is not the turn's", async () => {
    const scene = makeScene({ settings: "off" });
    await scene.virtual.advance(1_000_000);
    const events: string[] = [];
    const watch = watchTurn(scene, settings, {
      name: "late",
      commitAbort: async () => true,
      onStall: () => void events.push("stalled"),
      onAborted: () => {},
    });
    await scene.virtual.advance(timeoutMs - 1);
    expect(events).toEqual([]);
    await watch.stop();
    expect(await scene.end()).toBe(0);
  });

  it("with the watchdog off nothing is armed and nothing is judged", async () => {
    const scene = makeScene({ settings: "off" });
    expect(scene.virtual.pendingTimerCount()).toBe(0);
    await scene.virtual.advance(100 * timeoutMs);
    expect(scene.events).toEqual([]);
    expect(await scene.end()).toBe(0);
  });
});
