import { createCompressionFence } from "@turnkeeper/compression-fence";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { TurnInterrupt } from "@turnkeeper/interrupt";
import { describe, expect, it } from "vitest";
import { leaseLost, makeScene, softStop, stalled, userStop } from "./scene.ts";

describe("the turns of children", () => {
  it("are stopped hard with their parent, at any depth, with its reason", async () => {
    const { turn } = makeScene();
    const child = turn.child();
    const grandchild = child.child();
    await turn.interrupt({ ...leaseLost, message: "Another process holds the session." });
    for (const each of [child, grandchild]) {
      expect(each.hardSignal.aborted).toBe(true);
      expect(each.current).toMatchObject({
        ...leaseLost,
        message: "Another process holds the session.",
        fromParent: true,
      });
    }
    expect(turn.current?.fromParent).toBe(false);
  });

  it("go on when the parent is stopped softly, and when its stop is vetoed", async () => {
    const soft = makeScene();
    const child = soft.turn.child();
    await soft.turn.interrupt(softStop);
    expect(child.signal.aborted).toBe(false);

    const vetoed = makeScene();
    const other = vetoed.turn.child();
    const claim = vetoed.claim();
    vetoed.clock.progress("model");
    await vetoed.turn.interrupt({ ...stalled, claim });
    expect(other.current).toBeUndefined();
  });

  it("are stopped when a soft stop of the parent hardens", async () => {
    const { turn } = makeScene();
    const child = turn.child();
    await turn.interrupt(softStop);
    await turn.interrupt(userStop);
    expect(child.hardSignal.aborted).toBe(true);
  });

  it("made after a hard stop are stopped at once, after a soft one softly, and harden with it", async () => {
    const hard = makeScene().turn;
    await hard.interrupt(userStop);
    expect(hard.child().hardSignal.aborted).toBe(true);

    const soft = makeScene().turn;
    await soft.interrupt(softStop);
    const child = soft.child();
    expect([child.signal.aborted, child.hardSignal.aborted]).toEqual([true, false]);
    expect(child.current).toMatchObject({ ...softStop, fromParent: true });
    await soft.interrupt(userStop);
    expect(child.hardSignal.aborted).toBe(true);
  });

  it("of a turn that has finished are stopped at once: nobody would pass a stop on to them", async () => {
    const over = makeScene().turn;
    over.finish();
    const orphan = over.child();
    expect(orphan.current).toMatchObject({
      hard: true,
      reason: "parent",
      message: "Its parent turn had finished.",
      fromParent: true,
    });

    const stopped = makeScene().turn;
    await stopped.interrupt({ ...softStop, message: "Enough." });
    stopped.finish();
    expect(stopped.child().current).toMatchObject({ hard: true, reason: "user-stop", message: "Enough." });
  });

  it("never stop their parent or each other", async () => {
    const { turn } = makeScene();
    const [first, second] = [turn.child(), turn.child()];
    await first.interrupt(userStop);
    expect([turn.signal.aborted, second.signal.aborted]).toEqual([false, false]);
  });

  it("are all told though one of them has a listener that throws", async () => {
    const { turn, faults } = makeScene();
    const children = [turn.child(), turn.child(), turn.child()];
    children[0]?.hardSignal.addEventListener("abort", () => {
      throw new Error("tool broken");
    });
    expect(await turn.interrupt(userStop)).toBe("published");
    expect(children.map((child) => child.hardSignal.aborted)).toEqual([true, true, true]);
    expect(faults.map((fault) => fault.code)).toEqual(["LISTENER_FAILED"]);
  });

  it("wait for their own commits, not for their siblings'", async () => {
    const { turn, host } = makeScene();
    const fence = createCompressionFence({ host });
    const [busy, idle] = [turn.child({ commitBarrier: fence }), turn.child()];
    const commit = fence.begin();
    await turn.interrupt(userStop);
    expect([busy.signal.aborted, busy.hardSignal.aborted, idle.hardSignal.aborted]).toEqual([true, false, true]);
    commit?.finish();
    await host.advance(0);
    expect(busy.hardSignal.aborted).toBe(true);
    expect(host.pendingTimerCount()).toBe(0);
  });

  it("that have finished are let go and not stopped any more", async () => {
    const { turn } = makeScene();
    const child = turn.child();
    child.finish();
    await turn.interrupt(userStop);
    expect(child.current).toBeUndefined();
    expect(child.signal.aborted).toBe(false);
  });

  it("outlive a parent that finished unstopped: they are nobody's children then", async () => {
    const { turn } = makeScene();
    const child = turn.child();
    turn.finish();
    expect(await turn.interrupt(userStop)).toBe("already-finished");
    expect(child.signal.aborted).toBe(false);
    expect(await child.interrupt(userStop)).toBe("published");
  });

  it("are kept in memory by no parent once they, or it, have finished", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const { turn, host } = makeScene();
    const over = makeScene().turn;
    const born = (parent: TurnInterrupt, finishes: boolean): WeakRef<TurnInterrupt> => {
      const child = parent.child();
      if (finishes) child.finish();
      return new WeakRef(child);
    };
    const finished = Array.from({ length: 50 }, () => born(turn, true));
    const orphaned = Array.from({ length: 50 }, () => born(over, false));
    over.finish();
    const isGone = (ref: WeakRef<TurnInterrupt>): boolean => ref.deref() === undefined;
    // A WeakRef holds its target until the job that made it is over, hence the hops.
    for (let hop = 0; hop < 10 && ![...finished, ...orphaned].every(isGone); hop++) {
      await host.settle();
      collect();
    }
    expect(finished.filter(isGone)).toHaveLength(50);
    expect(orphaned.filter(isGone)).toHaveLength(50);
    expect([turn.current, over.current]).toEqual([undefined, undefined]);
  });
});
