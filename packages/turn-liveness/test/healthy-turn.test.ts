import assert from "node:assert/strict";
import type { Host } from "@turnkeeper/kernel";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { watchTurn } from "@turnkeeper/turn-liveness";
import { makeScene, settings } from "./scene.ts";

const { timeoutMs, pollMs } = settings;

/** The host of a watch that takes a timer's word for it: the poll phase is not waited for. */
function withoutPollPhase(host: Host): Host {
  const afterPoll: Host["timers"]["afterPoll"] = (fn) => {
    fn();
    return () => {};
  };
  return { ...host, timers: { ...host.timers, afterPoll } };
}

/** A token stands in the socket's buffer when the timer that will judge the turn fires. */
async function tokenBehindTheTimer(watch: typeof watchTurn): Promise<readonly string[]> {
  const scene = makeScene({ watch });
  scene.clock.progress("model", "token");
  await scene.virtual.advance(timeoutMs - 1);
  scene.receive(() => scene.clock.progress("model", "token"));
  await scene.virtual.advance(2 * pollMs);
  expect(await scene.end()).toBe(0);
  return scene.events;
}

describe("a turn that moves", () => {
  it("LIVE-2: progress that has arrived but is not delivered when the timer fires saves the turn", async () => {
    expect(await tokenBehindTheTimer(watchTurn)).toEqual([]);
  });

  it("LIVE-2 control: without the look behind the poll phase it fails: a healthy turn is aborted", async () => {
    const naive: typeof watchTurn = (dependencies, each, turn) =>
      watchTurn({ ...dependencies, host: withoutPollPhase(dependencies.host) }, each, turn);
    expect(await tokenBehindTheTimer(naive)).toContain("aborted");
  });

  it("LIVE-2: whatever clocks and schedules do, a turn that moves within its bound of running time is not aborted", async () => {
    const reached = { blocked: 0, suspended: 0, stepped: 0, "late beyond the bound": 0, "long wait": 0 };
    const event = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          kind: fc.constant("run" as const),
          ms: fc.integer({ min: 1, max: timeoutMs - 2 * pollMs }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("block" as const), ms: fc.integer({ min: 1, max: 3 * timeoutMs }) }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant("suspend" as const),
          ms: fc.integer({ min: 1, max: 100 * timeoutMs }),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant("step" as const), ms: fc.integer({ min: -1e9, max: 1e9 }) }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant("wait" as const),
          ms: fc.integer({ min: timeoutMs, max: 4 * timeoutMs }),
        }),
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 4, maxLength: 25 }), async (events) => {
        const scene = makeScene();
        for (const { kind, ms } of events) {
          if (kind === "run") await scene.virtual.advance(ms);
          else if (kind === "block") {
            reached.blocked++;
            if (ms > timeoutMs) reached["late beyond the bound"]++;
            scene.block(ms);
            // What arrived meanwhile is delivered once the loop polls again; time for one look passes before.
            await scene.virtual.advance(pollMs / 2);
          } else if (kind === "suspend") {
            reached.suspended++;
            scene.virtual.suspend(ms);
          } else if (kind === "step") {
            reached.stepped++;
            scene.virtual.jumpWall(ms);
          } else {
            reached["long wait"]++;
            // Inside its bound: a wait that lasts exactly as long as it may has used it up.
            const wait = scene.clock.declareWait({ kind: "tool", name: "shell", boundMs: 4 * timeoutMs + 1 });
            await scene.virtual.advance(ms);
            wait[Symbol.dispose]();
          }
          if (kind === "run" || kind === "wait" || kind === "block") scene.clock.progress("model");
        }
        assert.deepEqual(
          scene.events.filter((each) => each !== "confirm lease"),
          [],
        );
        assert.equal(await scene.end(), 0);
      }),
      { numRuns: 200 },
    );
    expect(Object.entries(reached).filter(([, count]) => count < 20)).toEqual([]);
  });

  it("one that moves every 20 ms is never observed, and goes on earning its renewals", async () => {
    const scene = makeScene({ settings: { timeoutMs: 300, pollMs: 50 } });
    for (let atMs = 0; atMs < 600; atMs += 20) {
      await scene.virtual.advance(20);
      scene.clock.progress("model", "delta");
      expect(scene.clock.hasEvidence(300)).toBe(true);
    }
    expect(scene.events).toEqual([]);
    expect(await scene.end()).toBe(0);
  });
});

describe("a gap in which the process could not run", () => {
  it("counts also between the look and its verdict: a callback that delivers progress and blocks kills nobody", async () => {
    for (const moves of [true, false]) {
      const scene = makeScene({ settings: { timeoutMs: 60, pollMs: 10 } });
      await scene.virtual.advance(55);
      scene.receive(() => {
        if (moves) scene.clock.progress("model");
        scene.block(moves ? 90 : 5000);
      });
      await scene.virtual.advance(10);
      expect(scene.events).toEqual(moves ? [] : ["confirm lease"]);
      scene.clock.progress("model");
      await scene.virtual.advance(50);
      expect(scene.isPublished()).toBe(false);
      expect(await scene.end()).toBe(0);
    }
  });

  it("too short to be a gap does not hide a move behind it: what moved in the poll phase is not judged on that look", async () => {
    const scene = makeScene({ settings: { timeoutMs: 60, pollMs: 200 } });
    scene.receive(() => {
      scene.clock.progress("model");
      expect(scene.clock.snapshot().idleMs).toBe(0);
      scene.block(90);
    });
    await scene.virtual.advance(205);
    expect(scene.events).toEqual([]);
    expect(scene.clock.snapshot().idleMs).toBeGreaterThan(60);
    expect(await scene.end()).toBe(0);
  });

  it("judges nobody on the first look, and re-reads the lease before anything else", async () => {
    const scene = makeScene();
    await scene.virtual.advance(pollMs);
    scene.block(10 * timeoutMs);
    await scene.virtual.advance(pollMs);
    expect(scene.events).toEqual(["confirm lease"]);
    scene.clock.progress("model");
    await scene.virtual.advance(timeoutMs / 2);
    expect(scene.events).toEqual(["confirm lease"]);
    expect(await scene.end()).toBe(0);
  });

  it("does not count as silence: a turn has its whole bound of running time", async () => {
    const scene = makeScene();
    await scene.virtual.advance(timeoutMs / 2);
    scene.block(10 * timeoutMs);
    await scene.virtual.advance(timeoutMs / 2 - pollMs);
    expect(scene.isPublished()).toBe(false);
    await scene.virtual.advance(4 * pollMs);
    expect(scene.isPublished()).toBe(true);
    expect(await scene.end()).toBe(0);
  });

  it("gives a turn at the very end of its bound one sampling period to show what it had done, every time", async () => {
    const scene = makeScene();
    for (let gap = 1; gap <= 3; gap++) {
      scene.clock.progress("model");
      await scene.virtual.advance(timeoutMs - pollMs / 2);
      scene.block(10 * timeoutMs);
      await scene.virtual.advance(pollMs);
      expect(scene.events).toEqual(Array.from({ length: gap }, () => "confirm lease"));
    }
    expect(await scene.end()).toBe(0);
  });

  it("is no ordinary lateness: 100 ms with quick looks, a second with slow ones", async () => {
    const gapsWith = async (slowPollMs: number, lateMs: number): Promise<number> => {
      const scene = makeScene({ settings: { timeoutMs: 60_000, pollMs: slowPollMs } });
      await scene.virtual.advance(2.5 * slowPollMs);
      scene.block(lateMs);
      await scene.virtual.advance(slowPollMs);
      expect(await scene.end()).toBe(0);
      return scene.events.length;
    };
    expect(await gapsWith(20, 90)).toBe(0);
    expect(await gapsWith(20, 110)).toBe(1);
    expect(await gapsWith(10_000, 900)).toBe(0);
    expect(await gapsWith(10_000, 1100)).toBe(1);
  });

  it("does not use up a declared wait that began long after the last progress", async () => {
    const scene = makeScene();
    scene.clock.progress("tool");
    await scene.virtual.advance(timeoutMs - 2 * pollMs);
    using _wait = scene.clock.declareWait({ kind: "tool", name: "shell", boundMs: 2 * timeoutMs });
    await scene.virtual.advance(timeoutMs);
    scene.block(10 * timeoutMs);
    await scene.virtual.advance(timeoutMs - 1);
    expect(scene.events).toEqual(["confirm lease"]);
    await scene.virtual.advance(2 * pollMs);
    expect(scene.isPublished()).toBe(true);
    expect(await scene.end()).toBe(0);
  });

  it("gives no time to a turn that moved after it", async () => {
    const scene = makeScene();
    scene.block(10 * timeoutMs);
    scene.clock.progress("model");
    expect(scene.clock.snapshot().idleMs).toBe(0);
    await scene.virtual.advance(pollMs);
    expect(scene.events).toEqual(["confirm lease"]);
    await scene.virtual.advance(timeoutMs + 2 * pollMs);
    expect(scene.isPublished()).toBe(true);
    expect(await scene.end()).toBe(0);
  });

  it("gives no time to a wait that began after it", async () => {
    const scene = makeScene();
    scene.block(10 * timeoutMs);
    using _wait = scene.clock.declareWait({ kind: "tool", name: "shell", boundMs: 2 * timeoutMs });
    await scene.virtual.advance(pollMs);
    expect(scene.events).toEqual(["confirm lease"]);
    expect(scene.clock.openWaits[0]?.endsInMs).toBeLessThanOrEqual(2 * timeoutMs);
    expect(await scene.end()).toBe(0);
  });

  it("does not use up a declared wait either", async () => {
    const scene = makeScene();
    scene.clock.progress("tool");
    using _wait = scene.clock.declareWait({ kind: "tool", name: "shell", boundMs: 2 * timeoutMs });
    await scene.virtual.advance(timeoutMs);
    scene.block(10 * timeoutMs);
    await scene.virtual.advance(timeoutMs - 2 * pollMs);
    expect(scene.events).toEqual(["confirm lease"]);
    await scene.virtual.advance(4 * pollMs);
    expect(scene.isPublished()).toBe(true);
    expect(await scene.end()).toBe(0);
  });

  it("is seen by the boot clock when the machine slept and the monotonic clock stood still", async () => {
    const scene = makeScene();
    scene.clock.progress("model");
    await scene.virtual.advance(timeoutMs - pollMs / 2);
    scene.virtual.suspend(8 * 3600 * 1000);
    await scene.virtual.advance(pollMs);
    expect(scene.events).toEqual(["confirm lease"]);
    scene.clock.progress("model");
    await scene.virtual.advance(timeoutMs / 2);
    expect(scene.events).toEqual(["confirm lease"]);
    expect(await scene.end()).toBe(0);
  });

  it("does not shield a stuck turn: one that is late at every look is judged at every other", async () => {
    const scene = makeScene();
    let looks = 0;
    while (!scene.isPublished() && looks < 40) {
      scene.block(2 * pollMs);
      await scene.virtual.advance(pollMs);
      looks++;
    }
    expect(scene.isPublished()).toBe(true);
    expect(looks).toBeLessThanOrEqual(timeoutMs / pollMs + 3);
    expect(await scene.end()).toBe(0);
  });

  it("leaves a turn alone whose lease no longer holds: stopping it is the lease's business", async () => {
    const scene = makeScene({ turn: { confirmLease: async () => false } });
    for (let look = 0; look < 40; look++) {
      scene.block(2 * pollMs);
      await scene.virtual.advance(pollMs);
    }
    expect(scene.events).toEqual([]);
    expect(await scene.end()).toBe(0);
  });

  it("judges nobody while the lease cannot be read, and says so", async () => {
    const confirmLease = async (): Promise<boolean> => {
      throw new Error("store busy");
    };
    const scene = makeScene({ turn: { confirmLease } });
    await scene.virtual.advance(timeoutMs / 2);
    scene.block(10 * timeoutMs);
    await scene.virtual.advance(pollMs);
    expect(scene.events).toEqual([]);
    expect(scene.faults.map((fault) => fault.code)).toEqual(["LEASE_UNCONFIRMED"]);
    expect(await scene.end()).toBe(0);
  });

  it("judges nobody while the lease cannot be read, however long every look is late", async () => {
    const confirmLease = async (): Promise<boolean> => {
      throw new Error("store busy");
    };
    const scene = makeScene({ turn: { confirmLease } });
    const lookCount = (3 * timeoutMs) / pollMs;
    for (let look = 0; look < lookCount; look++) {
      scene.block(timeoutMs);
      await scene.virtual.advance(pollMs);
    }
    expect(scene.events).toEqual([]);
    expect(scene.faults).toHaveLength(lookCount);
    expect(await scene.end()).toBe(0);
  });

  it("does not let a lease that never answers end the watch", async () => {
    const scene = makeScene({ turn: { confirmLease: () => new Promise(() => {}) } });
    scene.block(10 * timeoutMs);
    await scene.virtual.advance(pollMs);
    await scene.virtual.advance(10_000 + timeoutMs + 3 * pollMs);
    expect(scene.isPublished()).toBe(true);
    expect(await scene.end()).toBe(0);
  });
});
