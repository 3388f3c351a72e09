import type { AbortClaim } from "@turnkeeper/turn-liveness";
import { watchTurn } from "@turnkeeper/turn-liveness";
import { describe, expect, it } from "vitest";
import { deferred, makeScene, settings } from "./scene.ts";
import type { ParkPoint, Scene } from "./scene.ts";

const { timeoutMs, pollMs } = settings;
const stallMs = timeoutMs + 2 * pollMs;

/** A watch as it was first written: it says what it is about to do, stops the renewals, and then tries. */
const eagerWatch: typeof watchTurn = (dependencies, each, turn) =>
  watchTurn(dependencies, each, {
    ...turn,
    onStall: (observation) => {
      turn.onStall(observation);
      turn.onAborted(observation);
      turn.withdraw?.();
    },
    onAborted: () => {},
    withdraw: () => {},
  });

/** The turn moves while the watch is held up at `point`, then the watch goes on. Answers the scene after the look. */
async function moveAt(point: ParkPoint, watch: typeof watchTurn = watchTurn): Promise<Scene> {
  const moved = deferred();
  let hasMoved = false;
  const scene = makeScene({
    watch,
    at: {
      [point]: (): void | Promise<void> => {
        if (hasMoved) return;
        hasMoved = true;
        // The warning callback is synchronous: the turn moves inside it. An abort is held up until the turn has moved.
        if (point === "onStall") scene.clock.progress("model");
        return point === "onStall" ? undefined : moved.promise;
      },
    },
  });
  await scene.virtual.advance(stallMs);
  expect(hasMoved).toBe(true);
  if (point !== "onStall") {
    scene.clock.progress("model");
    moved.resolve();
    await scene.virtual.settle();
  }
  return scene;
}

describe("a turn that moves after all", () => {
  it("LIVE-3: an abort that progress vetoes leaves no trace but the observation, and the turn keeps its renewals", async () => {
    for (const point of ["onStall", "before-consume"] as const) {
      const scene = await moveAt(point);
      expect(scene.events).not.toContain("aborted");
      expect(scene.events).not.toContain("withdrawn");
      expect(scene.events.filter((event) => event === "stalled")).toHaveLength(1);
      expect(scene.isPublished()).toBe(false);
      expect(scene.isRenewing()).toBe(true);
      expect(scene.clock.hasEvidence(timeoutMs)).toBe(true);
      expect(await scene.end()).toBe(0);
    }
  });

  it("LIVE-3 control: without the settlement behind the claim it fails: a turn that goes on was called aborted", async () => {
    for (const point of ["onStall", "before-consume"] as const) {
      const scene = await moveAt(point, eagerWatch);
      expect(scene.isPublished()).toBe(false);
      expect(scene.events).toContain("aborted");
      expect(scene.isRenewing()).toBe(false);
      expect(await scene.end()).toBe(0);
    }
  });

  it("is told to have resumed, once, and is watched on", async () => {
    const scene = await moveAt("before-consume");
    await scene.virtual.advance(2 * pollMs);
    expect(scene.events).toEqual(["stalled", "vetoed", "resumed"]);
    await scene.virtual.advance(stallMs);
    expect(scene.events).toEqual(["stalled", "vetoed", "resumed", "stalled", "published", "aborted", "withdrawn"]);
    expect(await scene.end()).toBe(0);
  });

  it("progress after the publication undoes nothing", async () => {
    const scene = await moveAt("after-publish");
    expect(scene.events).toEqual(["stalled", "published", "aborted", "withdrawn"]);
    expect(await scene.end()).toBe(0);
  });

  it("a declared wait that opens before the claim is consumed voids it too", async () => {
    const held = deferred();
    const scene = makeScene({ at: { "before-consume": () => held.promise } });
    await scene.virtual.advance(stallMs);
    using _wait = scene.clock.declareWait({ kind: "model", name: "slow", boundMs: 60_000 });
    held.resolve();
    await scene.virtual.advance(10 * timeoutMs);
    expect(scene.events).toEqual(["stalled", "vetoed"]);
    expect(await scene.end()).toBe(0);
  });
});

describe("a turn that only looked stuck", () => {
  it("is not even observed when the poll phase brings a declared wait", async () => {
    const scene = makeScene();
    await scene.virtual.advance(timeoutMs - 1);
    scene.receive(() => void scene.clock.declareWait({ kind: "model", name: "slow", boundMs: 60_000 }));
    await scene.virtual.advance(10 * pollMs);
    expect(scene.events).toEqual([]);
    expect(await scene.end()).toBe(0);
  });
});

describe("an abort claim", () => {
  it("is consumed once", () => {
    const { clock } = makeScene({ settings: "off" });
    const claim = clock.reserve(clock.snapshot());
    expect(claim?.consume()).toBe(true);
    expect(claim?.consume()).toBe(false);
  });

  it("is void after progress, and after a later reservation", () => {
    const { clock } = makeScene({ settings: "off" });
    const snapshot = clock.snapshot();
    const first = clock.reserve(snapshot);
    const second = clock.reserve(snapshot);
    expect(first?.consume()).toBe(false);
    clock.progress("model");
    expect(second?.consume()).toBe(false);
    expect(clock.reserve(snapshot)).toBeUndefined();
  });

  it("is not given while a declared wait is inside its bound", async () => {
    const { clock, virtual } = makeScene({ settings: "off" });
    using _wait = clock.declareWait({ kind: "child", name: "worker", boundMs: 100 });
    const reserve = (): AbortClaim | undefined => clock.reserve(clock.snapshot());
    expect(reserve()).toBeUndefined();
    await virtual.advance(100);
    expect(reserve()).toBeDefined();
  });
});
