import { describe, expect, it } from "vitest";
import type { CommitBarrier, InterruptOutcome } from "@turnkeeper/interrupt";
import { leaseLost, makeScene, stalled, userStop } from "./scene.ts";
import type { Scene } from "./scene.ts";

const fail = (): never => {
  throw new Error("broken");
};
/** Barriers that are broken in every way a barrier can be. */
const broken: Readonly<Record<string, CommitBarrier>> = {
  "commitInFlight throws": {
    get commitInFlight(): boolean {
      return fail();
    },
    settled: () => Promise.resolve(),
    cancelPending: () => {},
  },
  "settled throws": { commitInFlight: true, settled: fail, cancelPending: () => {} },
  "settled rejects": {
    commitInFlight: true,
    settled: () => Promise.reject(new Error("broken")),
    cancelPending: () => {},
  },
};

const traces = { current: undefined, isStopped: false, isHardStopped: false, fence: undefined, timers: 0 };

/** A watchdog whose stop fails open: whatever goes wrong, the turn is stopped all the same. */
async function failOpen(scene: Scene): Promise<InterruptOutcome> {
  try {
    return await scene.turn.interrupt({ ...stalled, claim: scene.claim() });
  } catch {
    return scene.turn.interrupt(stalled);
  }
}

describe("a stop that fails", () => {
  it.each(Object.entries(broken))(
    "INT-3: a watchdog's stop publishes nothing when the barrier is broken: %s",
    async (_how, commitBarrier) => {
      const scene = makeScene({ commitBarrier });
      const stopping = scene.turn.interrupt({ ...stalled, claim: scene.claim() });
      await expect(stopping).rejects.toThrow("broken");
      expect(scene.traces()).toEqual(traces);
      // It may be tried again, and is still alive to progress.
      scene.clock.progress("model");
      scene.turn.finish();
      expect(scene.host.pendingTimerCount()).toBe(0);
    },
  );

  it("INT-3: a watchdog's stop publishes nothing when its claim throws", async () => {
    const scene = makeScene();
    await expect(scene.turn.interrupt({ ...stalled, claim: { consume: fail } })).rejects.toThrow("broken");
    expect(scene.traces()).toEqual(traces);
  });

  it("INT-3 control: without failing closed it fails: a turn is stopped that nobody could prove stalled", async () => {
    const barrier = broken["settled rejects"];
    const scene = makeScene(barrier ? { commitBarrier: barrier } : {});
    expect(await failOpen(scene)).toBe("published");
    expect(scene.turn.hardSignal.aborted).toBe(true);
  });

  it.each(Object.entries(broken))(
    "INT-3: a lease loss stops the turn whatever the barrier does: %s",
    async (_how, commitBarrier) => {
      const scene = makeScene({ commitBarrier });
      const stopping = scene.turn.interrupt(leaseLost);
      expect(scene.turn.signal.aborted).toBe(true);
      expect(await stopping).toBe("published");
      expect(scene.turn.hardSignal.aborted).toBe(true);
      expect(scene.turn.current).toMatchObject({ hard: true, reason: "lease-lost" });
      expect(scene.faults.every((fault) => fault.code === "BARRIER_FAILED")).toBe(true);
      expect(scene.faults.length).toBeGreaterThan(0);
      expect(scene.host.pendingTimerCount()).toBe(0);
    },
  );

  it("INT-3 control: without the exemption from claims it fails: progress keeps a turn alive that has lost its lease", async () => {
    const scene = makeScene();
    const claim = scene.claim();
    scene.clock.progress("model");
    expect(await scene.turn.interrupt({ ...leaseLost, claim })).toBe("vetoed");
    expect(scene.turn.signal.aborted).toBe(false);
  });

  it("a cancel that throws comes after the publication and takes nothing back", async () => {
    const commitBarrier: CommitBarrier = {
      commitInFlight: false,
      settled: () => Promise.resolve(),
      cancelPending: fail,
    };
    for (const request of [userStop, { ...stalled, claim: { consume: () => true } }]) {
      const scene = makeScene({ commitBarrier });
      const child = scene.turn.child();
      expect(await scene.turn.interrupt(request)).toBe("published");
      expect([scene.turn.hardSignal.aborted, child.hardSignal.aborted]).toEqual([true, true]);
      expect(scene.faults.map((fault) => fault.code)).toEqual(["BARRIER_FAILED"]);
    }
  });
});
