import { describe, expect, it } from "vitest";
import { deferred, makeScene, settings } from "./scene.ts";

const { timeoutMs, pollMs } = settings;
const stallMs = timeoutMs + 2 * pollMs;

describe("the end of a watch", () => {
  it("calls nothing any more, leaves no timer and may be repeated", async () => {
    const scene = makeScene();
    await scene.virtual.advance(timeoutMs / 2);
    await Promise.all([scene.watch.stop(), scene.watch.stop()]);
    expect(scene.virtual.pendingTimerCount()).toBe(0);
    await scene.virtual.advance(10 * timeoutMs);
    expect(scene.events).toEqual([]);
  });

  it("while the look waits behind the poll phase ends the look: the turn is not even observed", async () => {
    const scene = makeScene();
    let stopped: Promise<void> | undefined;
    scene.receive(() => {
      stopped = scene.watch.stop();
    });
    await scene.virtual.advance(stallMs);
    await stopped;
    expect(scene.events).toEqual([]);
    expect(scene.virtual.pendingTimerCount()).toBe(0);
  });

  it("from within the observation reserves no claim", async () => {
    const scene = makeScene({ at: { onStall: () => void scene.watch.stop() } });
    await scene.virtual.advance(stallMs);
    expect(scene.events).toEqual(["stalled"]);
    expect(scene.virtual.pendingTimerCount()).toBe(0);
  });

  it("while the lease is being re-read waits for neither it nor its bound", async () => {
    const scene = makeScene({ at: { "confirm-lease": () => new Promise<void>(() => {}) } });
    scene.block(10 * timeoutMs);
    await scene.virtual.advance(pollMs);
    await scene.watch.stop();
    expect(scene.events).toEqual(["confirm lease"]);
    expect(scene.virtual.pendingTimerCount()).toBe(0);
  });

  it("which the published stop itself brings about still says that the turn was aborted", async () => {
    const answered = deferred();
    const scene = makeScene({ at: { "after-publish": () => answered.promise } });
    await scene.virtual.advance(stallMs);
    const stopped = scene.watch.stop();
    answered.resolve();
    await stopped;
    expect(scene.events).toEqual(["stalled", "published", "aborted", "withdrawn"]);
    expect(scene.virtual.pendingTimerCount()).toBe(0);
  });

  it("waits a second at most for a commit that does not answer, and calls nothing after it", async () => {
    const answered = deferred();
    const scene = makeScene({ at: { "after-publish": () => answered.promise } });
    await scene.virtual.advance(stallMs);
    let isStopped = false;
    const stopped = scene.watch.stop().then(() => (isStopped = true));
    await scene.virtual.advance(999);
    expect(isStopped).toBe(false);
    await scene.virtual.advance(1);
    await stopped;
    expect(scene.virtual.pendingTimerCount()).toBe(0);
    answered.resolve();
    await scene.virtual.settle();
    expect(scene.events).toEqual(["stalled", "published"]);
    expect(scene.faults).toEqual([]);
  });

  it("vetoes an abort that has not been published yet, and does not wait for it", async () => {
    const held = deferred();
    const scene = makeScene({ at: { "before-consume": () => held.promise } });
    await scene.virtual.advance(stallMs);
    const stopped = scene.watch.stop();
    held.resolve();
    await stopped;
    await scene.virtual.settle();
    expect(scene.events).toEqual(["stalled", "vetoed"]);
    expect(scene.virtual.pendingTimerCount()).toBe(0);
  });

  it("comes by itself with the abort: the turn is not looked at again", async () => {
    const scene = makeScene();
    await scene.virtual.advance(stallMs);
    expect(scene.virtual.pendingTimerCount()).toBe(0);
    await scene.watch.stop();
  });
});
