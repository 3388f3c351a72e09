import assert from "node:assert/strict";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SteerBatch } from "@turnkeeper/interrupt";
import { makeScene, softStop, userStop } from "./scene.ts";

describe("a steer", () => {
  it("is delivered with those before it, in order, one a line", () => {
    const { turn } = makeScene();
    expect([turn.steer("first"), turn.steer("second\nline")]).toEqual([true, true]);
    const batch = turn.takeSteers();
    expect(batch?.texts).toEqual(["first", "second\nline"]);
    expect(batch?.text).toBe("first\nsecond\nline");
    expect(batch?.deliver()).toBe(true);
    expect(turn.takeSteers()).toBeUndefined();
    expect(turn.finish()).toEqual([]);
  });

  it("of blank text is refused", () => {
    const { turn } = makeScene();
    expect([turn.steer(""), turn.steer(" \n\t")]).toEqual([false, false]);
    expect(turn.takeSteers()).toBeUndefined();
  });

  it("survives a soft stop, and one that comes after it is refused: it is a turn of its own", async () => {
    const { turn } = makeScene();
    turn.steer("before");
    await turn.interrupt(softStop);
    expect(turn.steer("after")).toBe(false);
    expect(turn.takeSteers()?.texts).toEqual(["before"]);
    expect(turn.finish()).toEqual(["before"]);
  });

  it("is dropped by a hard stop and returned as undelivered at the end, once", async () => {
    const { turn } = makeScene();
    turn.steer("one");
    turn.steer("two");
    await turn.interrupt(userStop);
    expect(turn.takeSteers()).toBeUndefined();
    expect(turn.steer("three")).toBe(false);
    expect(turn.finish()).toEqual(["one", "two"]);
    expect(turn.finish()).toEqual([]);
  });

  it("that was taken but not put into a request stays, with its place in the order", () => {
    const { turn } = makeScene();
    turn.steer("one");
    turn.takeSteers();
    turn.steer("two");
    expect(turn.takeSteers()?.texts).toEqual(["one", "two"]);
    expect(turn.finish()).toEqual(["one", "two"]);
  });

  it("is delivered once though two batches hold it: the later one may", () => {
    const { turn } = makeScene();
    turn.steer("one");
    const earlier = turn.takeSteers();
    const later = turn.takeSteers();
    expect([earlier?.deliver(), later?.deliver(), later?.deliver()]).toEqual([false, true, false]);
    expect(turn.finish()).toEqual([]);
  });

  it("caught between its batch and its delivery by a hard stop or the end is told undelivered", async () => {
    for (const end of ["hard", "finish"]) {
      const { turn } = makeScene();
      turn.steer("one");
      const batch = turn.takeSteers();
      if (end === "hard") await turn.interrupt(userStop);
      const undelivered = turn.finish();
      expect(batch?.deliver()).toBe(false);
      expect(undelivered).toEqual(["one"]);
    }
  });

  it("that came while a batch was on its way waits for the next", () => {
    const { turn } = makeScene();
    turn.steer("one");
    const batch = turn.takeSteers();
    turn.steer("two");
    expect(batch?.deliver()).toBe(true);
    expect(turn.takeSteers()?.texts).toEqual(["two"]);
  });

  it("is delivered or returned as undelivered, never both, never neither, in order, whatever happens", async () => {
    const reached = { delivered: 0, undelivered: 0, refused: 0, "stale batch": 0 };
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.constant("steer" as const) },
      { weight: 1, arbitrary: fc.constant("redirect" as const) },
      { weight: 4, arbitrary: fc.constant("take" as const) },
      { weight: 4, arbitrary: fc.constant("deliver" as const) },
      { weight: 1, arbitrary: fc.constant("soft" as const) },
      { weight: 1, arbitrary: fc.constant("hard" as const) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 30, size: "max" }), async (steps) => {
        const { turn } = makeScene();
        using _phase = turn.enterPhase("model-request");
        const accepted: string[] = [];
        const delivered: string[] = [];
        const batches: SteerBatch[] = [];
        for (const [index, each] of steps.entries()) {
          const text = `s${index}`;
          if (each === "steer" || each === "redirect") {
            const isAccepted = each === "steer" ? turn.steer(text) : turn.redirect(text) !== "refused";
            if (isAccepted) accepted.push(text);
            else reached.refused++;
          } else if (each === "take") {
            const batch = turn.takeSteers();
            if (batch) batches.push(batch);
          } else if (each === "deliver") {
            // Any batch, old or new, at any time.
            const batch = batches[index % Math.max(1, batches.length)];
            if (batch?.deliver()) delivered.push(...batch.texts);
            else if (batch) reached["stale batch"]++;
          } else await turn.interrupt(each === "soft" ? softStop : userStop);
        }
        const undelivered = turn.finish();
        reached.delivered += delivered.length;
        reached.undelivered += undelivered.length;
        assert.deepEqual([...delivered, ...undelivered], accepted);
      }),
      { numRuns: 500 },
    );
    expect(Object.entries(reached).filter(([, count]) => count < 50)).toEqual([]);
  });
});
