import { createTurnInterrupt } from "@turnkeeper/interrupt";
import type { TurnInterrupt } from "@turnkeeper/interrupt";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { describe, expect, it } from "vitest";
import { makeScene, softStop, userStop } from "./scene.ts";

/** A turn that runs tools one after the other, and asks before each. Answers what it ran. */
async function runTools(
  turn: TurnInterrupt,
  names: readonly string[],
  duringFirst: () => Promise<unknown>,
): Promise<readonly string[]> {
  const ran: string[] = [];
  try {
    for (const name of names) {
      using _phase = turn.enterPhase("tools");
      ran.push(name);
      if (ran.length === 1) await duringFirst();
    }
  } catch (error) {
    expect(error).toMatchObject({ code: "INTERRUPTED" });
  }
  return ran;
}

/** Two turns after each other; the first is stopped when it is over. Answers what the second ran. */
async function lateStop(first: TurnInterrupt, second: TurnInterrupt): Promise<readonly string[]> {
  await runTools(first, ["a"], async () => {});
  first.finish();
  return runTools(second, ["b", "c"], async () => {
    expect(await first.interrupt(userStop)).toBe(first === second ? "published" : "already-finished");
  });
}

/** The interrupt state of an agent: one for all its turns, cleared as each begins. */
function ofAnAgent(): TurnInterrupt {
  const shared = makeScene().turn;
  shared.finish = () => [];
  return shared;
}

describe("an interrupt", () => {
  it("INT-2: a stop that comes too late for one turn does not touch the next", async () => {
    expect(await lateStop(makeScene().turn, makeScene().turn)).toEqual(["b", "c"]);
  });

  it("INT-2 control: without an interrupt of its own for each turn it fails: the next turn is stopped", async () => {
    const shared = ofAnAgent();
    expect(await lateStop(shared, shared)).toEqual(["b"]);
  });

  it("INT-2: after a stop is observed no further tool starts, soft or hard", async () => {
    for (const request of [softStop, userStop]) {
      const { turn } = makeScene();
      expect(await runTools(turn, ["a", "b", "c"], () => turn.interrupt(request))).toEqual(["a"]);
    }
  });

  it("INT-2 control: without asking at each start it fails: tools go on after the stop", async () => {
    const { turn } = makeScene();
    const ran: string[] = [];
    for (const name of ["a", "b", "c"]) {
      ran.push(name);
      if (name === "a") await turn.interrupt(userStop);
    }
    expect(turn.hardSignal.aborted).toBe(true);
    expect(ran).toEqual(["a", "b", "c"]);
  });

  it("of one turn leaves another that runs beside it alone, with its steers and its fence", async () => {
    const [stopped, other] = [makeScene(), makeScene()];
    other.turn.steer("go on");
    await stopped.turn.interrupt(userStop);
    expect(other.turn.current).toBeUndefined();
    expect(other.turn.signal.aborted).toBe(false);
    expect(other.fence.begin()).toBeDefined();
    expect(other.turn.takeSteers()?.texts).toEqual(["go on"]);
  });

  it("a phase cannot be entered after the turn has finished", () => {
    const turn = createTurnInterrupt({ host: virtualHost() });
    turn.finish();
    expect(() => turn.enterPhase("model-request")).toThrow(expect.objectContaining({ code: "TURN_FINISHED" }));
  });
});
