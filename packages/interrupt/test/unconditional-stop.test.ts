import { createTurnInterrupt, turnInterruptDefaults } from "@turnkeeper/interrupt";
import { CodedError } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { describe, expect, it } from "vitest";
import { leaseLost, makeScene, softStop, stalled, userStop } from "./scene.ts";

describe("a stop without a claim", () => {
  it("is published within the call, before anything else can run", () => {
    for (const request of [softStop, userStop, leaseLost]) {
      const { turn } = makeScene();
      void turn.interrupt(request);
      expect(turn.signal.aborted).toBe(true);
      expect(turn.hardSignal.aborted).toBe(request.hard);
      expect(turn.current).toMatchObject(request);
    }
  });

  it("with a commit in flight is acknowledged at once and hardens when the commit is over", async () => {
    const scene = makeScene();
    const commit = scene.fence.begin();
    const stopping = scene.turn.interrupt(userStop);
    expect([scene.turn.signal.aborted, scene.turn.hardSignal.aborted]).toEqual([true, false]);
    expect(() => scene.turn.enterPhase("tools")).toThrow(expect.objectContaining({ code: "INTERRUPTED" }));
    await scene.host.settle();
    expect(scene.turn.hardSignal.aborted).toBe(false);
    commit?.finish();
    await scene.host.advance(0);
    expect(await stopping).toBe("published");
    expect(scene.turn.hardSignal.aborted).toBe(true);
    expect(scene.turn.current).toMatchObject({ hard: true, reason: "user-stop" });
    expect(scene.turn.current?.earlier).toBeUndefined();
    expect(scene.fence.refusal).toBe("cancelled");
  });

  it("never waits for minutes: it hardens after commitWaitMs, and the commit runs on untouched", async () => {
    const scene = makeScene();
    const commit = scene.fence.begin();
    const stopping = scene.turn.interrupt(userStop);
    await scene.host.advance(turnInterruptDefaults.commitWaitMs - 1);
    expect(scene.turn.hardSignal.aborted).toBe(false);
    await scene.host.advance(1);
    expect(await stopping).toBe("published");
    expect(scene.turn.hardSignal.aborted).toBe(true);
    expect(scene.fence.commitInFlight).toBe(true);
    commit?.finish();
    expect(scene.host.pendingTimerCount()).toBe(0);
  });

  it("soft waits for no commit, and can be hardened while it runs", async () => {
    const scene = makeScene();
    const commit = scene.fence.begin();
    const soft = scene.turn.interrupt(softStop);
    expect(scene.host.pendingTimerCount()).toBe(0);
    expect(await soft).toBe("published");
    const hard = scene.turn.interrupt(leaseLost);
    commit?.finish();
    await scene.host.advance(0);
    expect(await hard).toBe("published");
    expect(scene.turn.current).toMatchObject({ reason: "lease-lost", earlier: { reason: "user-stop" } });
  });

  it("never tells a barrier whose commit still runs to cancel", async () => {
    let cancelCount = 0;
    const commitBarrier = {
      commitInFlight: true,
      settled: () => new Promise<void>(() => {}),
      cancelPending: () => void cancelCount++,
    };
    const scene = makeScene({ commitBarrier });
    const stopping = scene.turn.interrupt(userStop);
    await scene.host.advance(turnInterruptDefaults.commitWaitMs);
    expect(await stopping).toBe("published");
    expect(cancelCount).toBe(0);
  });

  it("with commitWaitMs 0 does not wait at all", async () => {
    const scene = makeScene({ options: { commitWaitMs: 0 } });
    scene.fence.begin();
    const stopping = scene.turn.interrupt(userStop);
    await scene.host.advance(0);
    expect(await stopping).toBe("published");
    expect(scene.turn.hardSignal.aborted).toBe(true);
  });

  it("hard after soft hardens, and the record keeps both", async () => {
    const { turn } = makeScene();
    expect(await turn.interrupt(softStop)).toBe("published");
    expect(await turn.interrupt(leaseLost)).toBe("published");
    expect(turn.hardSignal.aborted).toBe(true);
    expect(turn.current).toMatchObject({
      reason: "lease-lost",
      hard: true,
      earlier: { reason: "user-stop", hard: false },
    });
    expect(turn.signal.reason).toMatchObject({ context: { hard: false, reason: "user-stop" } });
    expect(turn.hardSignal.reason).toMatchObject({ context: { hard: true, reason: "lease-lost" } });
  });

  it("never softens, and the first of its hardness is the one that is remembered", async () => {
    const { turn } = makeScene();
    await turn.interrupt(leaseLost);
    expect(await turn.interrupt(softStop)).toBe("already-interrupted");
    expect(await turn.interrupt(userStop)).toBe("already-interrupted");
    expect(turn.current).toMatchObject({ reason: "lease-lost" });
    const soft = makeScene().turn;
    await soft.interrupt({ ...softStop, by: "first" });
    expect(await soft.interrupt({ ...softStop, by: "second" })).toBe("already-interrupted");
    expect(soft.current?.by).toBe("first");
  });

  it("two hard ones during one commit: the first is published, the second is told at once", async () => {
    const scene = makeScene();
    const commit = scene.fence.begin();
    const reasons: string[] = [];
    scene.turn.hardSignal.addEventListener("abort", () => reasons.push(scene.turn.current?.reason ?? ""));
    const first = scene.turn.interrupt(userStop);
    expect(await scene.turn.interrupt(leaseLost)).toBe("already-interrupted");
    commit?.finish();
    await scene.host.advance(0);
    expect(await first).toBe("published");
    expect(reasons).toEqual(["user-stop"]);
    expect(scene.host.pendingTimerCount()).toBe(0);
  });

  it("overtakes a watchdog's that waits: the claim is left unused", async () => {
    const scene = makeScene();
    const commit = scene.fence.begin();
    const claim = scene.claim();
    const watchdog = scene.turn.interrupt({ ...stalled, claim });
    const user = scene.turn.interrupt(userStop);
    commit?.finish();
    await scene.host.advance(0);
    expect(await Promise.all([watchdog, user])).toEqual(["already-interrupted", "published"]);
    expect(scene.turn.current).toMatchObject({ reason: "user-stop", hard: true });
    expect(claim.consume()).toBe(true);
  });
});

describe("the record of a stop", () => {
  it("says who and why, in the signal's reason too", async () => {
    const { turn, host } = makeScene();
    await turn.interrupt({ ...stalled, claim: { consume: () => true } });
    expect(turn.current).toEqual({ ...stalled, atMs: host.clock.wallMs(), fromParent: false });
    const { reason } = turn.signal;
    expect(CodedError.is(reason, "INTERRUPTED")).toBe(true);
    expect(JSON.parse(JSON.stringify(reason))).toEqual({
      code: "INTERRUPTED",
      message: "This turn was stopped (hard, stalled, by watchdog). No progress for 600 s.",
      context: { hard: true, reason: "stalled", by: "watchdog" },
    });
  });

  it("of a system's stop claims no user behind it", async () => {
    for (const reason of ["stalled", "lease-lost", "deadline", "shutdown"]) {
      const { turn } = makeScene();
      await turn.interrupt({ hard: true, reason });
      const error: unknown = turn.signal.reason;
      expect(error).toMatchObject({ message: `This turn was stopped (hard, ${reason}).` });
      expect(JSON.stringify(error)).not.toMatch(/user/i);
    }
  });

  it("cannot be changed afterwards", async () => {
    const { turn } = makeScene();
    await turn.interrupt(softStop);
    expect(Object.isFrozen(turn.current)).toBe(true);
  });
});

describe("the end of a turn", () => {
  it("ends the waits for a commit at once: nothing is published, no timer is left", async () => {
    const scene = makeScene();
    const commit = scene.fence.begin();
    const claim = scene.claim();
    const watchdog = scene.turn.interrupt({ ...stalled, claim });
    await scene.host.settle();
    scene.turn.finish();
    expect(await watchdog).toBe("already-finished");
    expect(claim.consume()).toBe(true);
    expect(scene.turn.signal.aborted).toBe(false);
    expect(scene.host.pendingTimerCount()).toBe(0);
    commit?.finish();
    await scene.host.settle();
    expect(scene.host.pendingTimerCount()).toBe(0);
  });

  it("ends a user's wait too: what was acknowledged stays published, the hard half is not needed any more", async () => {
    const scene = makeScene();
    scene.fence.begin();
    const user = scene.turn.interrupt(userStop);
    scene.turn.finish();
    expect(await user).toBe("published");
    expect(scene.turn.hardSignal.aborted).toBe(false);
    expect(scene.turn.current).toMatchObject({ reason: "user-stop" });
    expect(await scene.turn.interrupt(leaseLost)).toBe("already-finished");
    expect(scene.host.pendingTimerCount()).toBe(0);
  });

  it("in the middle of a hardening answers that the turn had finished", async () => {
    const scene = makeScene();
    await scene.turn.interrupt(softStop);
    scene.fence.begin();
    const hardening = scene.turn.interrupt(userStop);
    scene.turn.finish();
    expect(await hardening).toBe("already-finished");
    expect(scene.turn.hardSignal.aborted).toBe(false);
  });

  it("from within a listener of a stop that waits ends the wait before it begins", async () => {
    const scene = makeScene();
    scene.fence.begin();
    scene.turn.signal.addEventListener("abort", () => void scene.turn.finish());
    expect(await scene.turn.interrupt(userStop)).toBe("published");
    expect(scene.turn.hardSignal.aborted).toBe(false);
    expect(scene.host.pendingTimerCount()).toBe(0);
  });

  it("from within a listener of the stop does not cut the stop short", async () => {
    const scene = makeScene();
    const child = scene.turn.child();
    scene.turn.signal.addEventListener("abort", () => void scene.turn.finish());
    expect(await scene.turn.interrupt(userStop)).toBe("published");
    expect([scene.turn.hardSignal.aborted, child.hardSignal.aborted]).toEqual([true, true]);
  });
});

describe("the options", () => {
  it("that are unknown or out of range are refused by name", () => {
    const host = virtualHost();
    const attempt = (options: object) => () => createTurnInterrupt({ host }, options);
    for (const commitWaitMs of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(attempt({ commitWaitMs })).toThrow(
        /commitWaitMs must be a finite number of milliseconds, at least 0, got/,
      );
    }
    expect(attempt({ commitWait: 5 })).toThrow(/option commitWait must be absent/);
    expect(attempt({ commitWaitMs: -1 })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    expect(turnInterruptDefaults).toEqual({ commitWaitMs: 2000 });
  });
});
