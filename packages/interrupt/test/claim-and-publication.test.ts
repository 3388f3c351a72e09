import { describe, expect, it } from "vitest";
import type { AbortClaim, InterruptOutcome } from "@turnkeeper/interrupt";
import { makeScene, softStop, stalled } from "./scene.ts";
import type { Scene } from "./scene.ts";

type Stop = (scene: Scene, claim: AbortClaim) => Promise<InterruptOutcome>;

const inOneStep: Stop = (scene, claim) => scene.turn.interrupt({ ...stalled, claim });

/** The historical bug: the claim is consumed, then there is a wait, then the stop is published. */
const inTwoSteps: Stop = async (scene, claim) => {
  if (!claim.consume()) return "vetoed";
  await scene.fence.settled();
  return scene.turn.interrupt(stalled);
};

/** The other one: the generation is compared again, but the act comes an `await` later. */
const checkedBeforehand: Stop = async (scene) => {
  const { generation } = scene.clock.snapshot();
  await scene.fence.settled();
  if (scene.clock.snapshot().generation !== generation) return "vetoed";
  await Promise.resolve();
  return scene.turn.interrupt(stalled);
};

/** A commit is in flight when the claim is handed over; the turn moves; the commit ends. */
async function progressDuringTheWait(
  stop: Stop,
): Promise<{ readonly scene: Scene; readonly outcome: InterruptOutcome }> {
  const scene = makeScene();
  const commit = scene.fence.begin();
  const stopping = stop(scene, scene.claim());
  await scene.host.settle();
  scene.clock.progress("compaction", "committed");
  commit?.finish();
  await scene.host.advance(0);
  return { scene, outcome: await stopping };
}

describe("a stop with a claim", () => {
  it("INT-1: progress while the stop waits for a commit comes first: nothing is published, nothing is changed", async () => {
    const { scene, outcome } = await progressDuringTheWait(inOneStep);
    expect(outcome).toBe("vetoed");
    expect(scene.traces()).toEqual({
      current: undefined,
      isStopped: false,
      isHardStopped: false,
      fence: undefined,
      timers: 0,
    });
  });

  it("INT-1 control: without claim and publication in one step it fails: a turn that had moved is stopped", async () => {
    const { scene, outcome } = await progressDuringTheWait(inTwoSteps);
    expect(outcome).toBe("published");
    expect(scene.turn.hardSignal.aborted).toBe(true);
  });

  it("INT-1 control: without the claim consumed in that step it fails: progress between check and act is overlooked", async () => {
    const scene = makeScene();
    const stopping = checkedBeforehand(scene, scene.claim());
    await Promise.resolve();
    scene.clock.progress("model");
    expect(await stopping).toBe("published");
    expect(scene.turn.signal.aborted).toBe(true);
  });

  it("INT-1: nothing else runs between the claim and the publication", async () => {
    const scene = makeScene();
    const order: string[] = [];
    const claim = scene.claim();
    scene.turn.signal.addEventListener("abort", () => order.push("published"), { once: true });
    const stopping = inOneStep(scene, {
      consume: () => {
        queueMicrotask(() => order.push("something else"));
        order.push("claimed");
        return claim.consume();
      },
    });
    expect(await stopping).toBe("published");
    expect(order).toEqual(["claimed", "published", "something else"]);
  });

  it("INT-1: progress between the reservation and the call comes first", async () => {
    const scene = makeScene();
    const claim = scene.claim();
    scene.clock.progress("model", "delta");
    expect(await inOneStep(scene, claim)).toBe("vetoed");
    expect(scene.traces()).toEqual({
      current: undefined,
      isStopped: false,
      isHardStopped: false,
      fence: undefined,
      timers: 0,
    });
  });

  it("INT-1: publication comes first: later progress undoes nothing", async () => {
    const scene = makeScene();
    const stopping = inOneStep(scene, scene.claim());
    // Without a commit in flight the publication is over before the call returns.
    scene.clock.progress("model", "late delta");
    expect(await stopping).toBe("published");
    expect(scene.turn.current).toMatchObject({ hard: true, reason: "stalled", by: "watchdog" });
    expect([scene.turn.signal.aborted, scene.turn.hardSignal.aborted]).toEqual([true, true]);
  });

  it("that is vetoed leaves a pending commit free to begin; one that is published cancels it", async () => {
    const vetoed = makeScene();
    const claim = vetoed.claim();
    vetoed.clock.progress("model");
    expect(await inOneStep(vetoed, claim)).toBe("vetoed");
    expect(vetoed.fence.begin()).toBeDefined();

    const published = makeScene();
    expect(await inOneStep(published, published.claim())).toBe("published");
    expect(published.fence.begin()).toBeUndefined();
    expect(published.fence.refusal).toBe("cancelled");
  });

  it("that waited and is published leaves the commit whole", async () => {
    const scene = makeScene();
    const commit = scene.fence.begin();
    const stopping = inOneStep(scene, scene.claim());
    await scene.host.settle();
    expect(scene.turn.signal.aborted).toBe(false);
    expect(scene.fence.commitInFlight).toBe(true);
    commit?.finish();
    await scene.host.advance(0);
    expect(await stopping).toBe("published");
    expect(scene.fence.refusal).toBe("cancelled");
  });

  it("does not wait for ever: after its bound it is published beside the commit, and the commit owns itself", async () => {
    const scene = makeScene({ options: { commitWaitMs: 500 } });
    const commit = scene.fence.begin();
    const stopping = inOneStep(scene, scene.claim());
    await scene.host.advance(499);
    expect(scene.turn.signal.aborted).toBe(false);
    await scene.host.advance(1);
    expect(await stopping).toBe("published");
    expect(scene.fence.commitInFlight).toBe(true);
    commit?.finish();
    expect(scene.host.pendingTimerCount()).toBe(0);
  });

  it("looks at its claim only behind the poll phase that follows its wait: data that had arrived comes first", async () => {
    const scene = makeScene({ options: { commitWaitMs: 500 } });
    const commit = scene.fence.begin();
    const stopping = inOneStep(scene, scene.claim());
    await scene.host.settle();
    // Armed after the wait's own timer and due with it: it stands for data delivered in the poll phase behind that timer.
    scene.host.timers.after(500, () => scene.clock.progress("model", "delta"));
    await scene.host.advance(500);
    expect(await stopping).toBe("vetoed");
    commit?.finish();
  });

  it("soft needs no wait and takes its claim in the same step", async () => {
    const scene = makeScene();
    const commit = scene.fence.begin();
    const outcome = await scene.turn.interrupt({ ...stalled, hard: false, claim: scene.claim() });
    expect(outcome).toBe("published");
    expect(scene.turn.hardSignal.aborted).toBe(false);
    commit?.finish();
  });

  it("finds a turn that is stopped already, or over, and leaves its claim unused", async () => {
    const scene = makeScene();
    await scene.turn.interrupt({ ...softStop, hard: true });
    const claim = scene.claim();
    expect(await inOneStep(scene, claim)).toBe("already-interrupted");
    expect(claim.consume()).toBe(true);

    const over = makeScene();
    const late = over.claim();
    over.turn.finish();
    expect(await inOneStep(over, late)).toBe("already-finished");
    expect(late.consume()).toBe(true);
  });

  it("does not wait for a commit where it has nothing left to do", async () => {
    const scene = makeScene({ options: { commitWaitMs: 500 } });
    const commit = scene.fence.begin();
    const user = scene.turn.interrupt({ ...softStop, hard: true });
    await scene.host.advance(500);
    await user;
    const stopping = scene.turn.interrupt({ ...stalled, claim: scene.claim() });
    expect(scene.host.pendingTimerCount()).toBe(0);
    expect(await stopping).toBe("already-interrupted");
    commit?.finish();
  });

  it("hardens a soft stop that the turn has ignored", async () => {
    const scene = makeScene();
    await scene.turn.interrupt(softStop);
    expect(await inOneStep(scene, scene.claim())).toBe("published");
    expect(scene.turn.current).toMatchObject({
      reason: "stalled",
      hard: true,
      earlier: { reason: "user-stop", hard: false },
    });
  });
});
