import fc from "fast-check";
import type { JsonValue } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import { Guardrails, guardThresholds } from "../src/guardrails.ts";
import type { GuardRule, GuardJudgement } from "../src/guardrails.ts";
import type { ToolTraits } from "../src/tool.ts";

interface Play {
  readonly name?: string;
  readonly input?: JsonValue;
  readonly status?: "ok" | "error" | "denied";
  readonly output?: JsonValue;
  readonly traits?: ToolTraits;
}

function play(plays: readonly Play[], guardrails = new Guardrails({ hardStop: true }), from = 0): GuardJudgement[] {
  return plays.flatMap((one, index) => step([one], guardrails, from + index));
}

/** The calls of one step: the model has heard of none when it asks for the last. */
function step(plays: readonly Play[], guardrails: Guardrails, from = 0): GuardJudgement[] {
  guardrails.stepBegins();
  return plays.map(({ name = "t", input = {}, status = "ok", output = "r", traits }, index) =>
    guardrails.observe({ callId: `c${from + index}`, name, input, traits }, { status, output }),
  );
}

const times = (count: number, one: (index: number) => Play): Play[] =>
  Array.from({ length: count }, (_, index) => one(index));

/** After how many calls the first judgement ends the turn, and by which rule. */
function end(judgements: readonly GuardJudgement[]): readonly [number, GuardRule] | undefined {
  const index = judgements.findIndex(({ halt }) => halt !== undefined);
  const rule = judgements[index]?.halt?.rule;
  return rule && [index + 1, rule];
}

const firstNote = (judgements: readonly GuardJudgement[]): number =>
  judgements.findIndex(({ note }) => note !== undefined) + 1;

describe("a turn that would make 602 calls", () => {
  it.each<[string, (index: number) => Play, number, [number, GuardRule]]>([
    ["the same one that fails", () => ({ status: "error" }), 2, [5, "exact-failure"]],
    ["one tool that fails on everything", (index) => ({ input: { index }, status: "error" }), 3, [8, "tool-failures"]],
    ["the same one that succeeds", () => ({}), 2, [5, "identical-calls"]],
    ["the same one that mutates", () => ({ traits: { mutates: true } }), 3, [5, "identical-calls"]],
    ["the same one that is denied", () => ({ status: "denied", output: "no" }), 3, [5, "identical-calls"]],
    ["two in turns", (index) => ({ name: `t${index % 2}` }), 3, [9, "no-progress"]],
    [
      "two in turns, of which one mutates",
      (index) => ({ name: `t${index % 2}`, traits: { mutates: index % 2 === 0 } }),
      6,
      [10, "cycle"],
    ],
    [
      "four in turns, which mutate",
      (index) => ({ input: { at: index % 4 }, traits: { mutates: true } }),
      12,
      [20, "cycle"],
    ],
  ])("by %s is told early and ends in time", (_what, one, note, ending) => {
    const judgements = play(times(602, one));
    expect(firstNote(judgements)).toBe(note);
    expect(end(judgements)).toEqual(ending);
    const soft = play(times(602, one), new Guardrails({ hardStop: false }));
    expect(end(soft)).toBeUndefined();
    expect(firstNote(soft)).toBe(note);
  });
});

describe("many calls of one step", () => {
  it.each<[string, (index: number) => Play, number, [number, GuardRule]]>([
    ["the same one that fails", () => ({ status: "error" }), 2, [5, "exact-failure"]],
    ["one tool that fails on everything", (index) => ({ input: { index }, status: "error" }), 3, [8, "tool-failures"]],
    ["the same one that succeeds", () => ({}), 2, [5, "identical-calls"]],
    ["two in turns", (index) => ({ name: `t${index % 2}`, traits: { mutates: true } }), 3, [5, "cycle"]],
  ])("count once: by %s its model is told before it ends", (_what, one, noteStep, [endStep, rule]) => {
    const guardrails = new Guardrails({ hardStop: true });
    for (let count = 1; count <= endStep; count++) {
      const judgements = step(
        times(40, (index) => one(count * 40 + index)),
        guardrails,
        count * 40,
      );
      expect([count, judgements.some(({ note }) => note !== undefined)]).toEqual([count, count >= noteStep]);
      expect([count, end(judgements)?.[1]]).toEqual([count, count === endStep ? rule : undefined]);
    }
  });

  it("count anew after a success among them", () => {
    const guardrails = new Guardrails({ hardStop: true });
    const failing = (count: number): Play[] => times(count, (index) => ({ input: { index }, status: "error" }));
    const steps = times(20, () => ({})).map(() =>
      step([...failing(3), { input: { is: "fine" }, output: { at: 1 } }, ...failing(3)], guardrails),
    );
    expect(steps.flat().filter(({ halt }) => halt?.rule === "tool-failures")).toEqual([]);
  });
});

describe("what is no loop", () => {
  it.each<[string, readonly Play[]]>([
    ["calls that differ in their arguments", times(100, (index) => ({ input: { index } }))],
    ["calls that differ in their results", times(100, (index) => ({ output: `r${index}` }))],
    ["polling, by the tool's name", times(100, () => ({ name: "job_poll" }))],
    ["polling, by the tool's word", times(100, () => ({ traits: { polls: true } }))],
    ["polling two in turns", times(100, (index) => ({ name: `${index % 2 === 0 ? "a" : "b"}_get_result` }))],
    [
      "failures between which something was changed",
      times(100, (index) =>
        index % 2 === 0
          ? { name: "test", status: "error", traits: { failsByDesign: true } }
          : { name: "edit", input: { index }, traits: { mutates: true } },
      ),
    ],
    [
      "looking again at what was changed",
      times(100, (index) =>
        index % 2 === 0 ? { name: "read" } : { name: "edit", input: { index }, traits: { mutates: true } },
      ),
    ],
    [
      "commands that fail, each another",
      times(100, (index) => ({ input: { index }, status: "error", traits: { failsByDesign: true } })),
    ],
  ])("%s", (_what, plays) => {
    expect(end(play(plays))).toBeUndefined();
  });
});

describe("a result that comes again", () => {
  const long = "x".repeat(512);

  it("is told in few words from the second time on, when it is long and no failure", () => {
    expect(play(times(3, () => ({ output: long }))).map(({ repeats }) => repeats)).toEqual([undefined, "c0", "c0"]);
    expect(play(times(3, () => ({ output: long.slice(1) }))).some(({ repeats }) => repeats)).toBe(false);
    expect(play(times(3, () => ({ output: long, status: "error" }))).some(({ repeats }) => repeats)).toBe(false);
    expect(play(times(3, (index) => ({ output: long, input: { index } }))).some(({ repeats }) => repeats)).toBe(false);
  });

  it("is told whole once the conversation no longer has the first", () => {
    const guardrails = new Guardrails({ hardStop: true });
    play([{ output: long }], guardrails);
    guardrails.contextReplaced();
    expect(
      play(
        times(2, () => ({ output: long })),
        guardrails,
        1,
      ).map(({ repeats }) => repeats),
    ).toEqual([undefined, "c1"]);
  });
});

describe("a cap", () => {
  it("is kept by reservation, and a call that did not start gives its place back, once", () => {
    const guardrails = new Guardrails({ hardStop: false });
    const call = { name: "web_search" };
    const places = Array.from({ length: 50 }, () => guardrails.reserve(call));
    expect(places.every((place) => place !== undefined)).toBe(true);
    expect(guardrails.reserve(call)).toBeUndefined();
    places[0]?.rollback();
    places[0]?.rollback();
    expect(guardrails.reserve(call)).toBeDefined();
    expect(guardrails.reserve(call)).toBeUndefined();
    expect(guardrails.reserve({ name: "delegate" })).toBeDefined();
  });

  it("is the tool's own where it has one, and 0 is none", () => {
    const guardrails = new Guardrails({ hardStop: false });
    expect(guardrails.reserve({ name: "t", traits: { maxPerTurn: 1 } })).toBeDefined();
    expect(guardrails.reserve({ name: "t", traits: { maxPerTurn: 1 } })).toBeUndefined();
    const free = Array.from({ length: 100 }, () => guardrails.reserve({ name: "delegate", traits: { maxPerTurn: 0 } }));
    expect(free.every((place) => place !== undefined)).toBe(true);
  });

  it("that is used up is no failure", () => {
    const guardrails = new Guardrails({ hardStop: true });
    const refusal = guardrails.refusalOf({ name: "web_search" });
    const plays = times(20, (input) => ({
      name: "web_search",
      input,
      status: "denied" as const,
      output: refusal.output,
    }));
    expect(end(play(plays, guardrails))).toBeUndefined();
  });
});

const anyPlay: fc.Arbitrary<Play> = fc
  .record({
    name: fc.constantFrom("read", "edit", "job_poll"),
    input: fc.constantFrom<JsonValue>({ a: 1 }, { a: 2 }),
    status: fc.constantFrom("ok" as const, "ok" as const, "error" as const, "denied" as const),
    output: fc.constantFrom("short", "y".repeat(600)),
  })
  .map((one) => ({ ...one, traits: one.name === "edit" ? { mutates: true } : {} }));

const anyPlays: fc.Arbitrary<readonly Play[]> = fc
  .array(fc.tuple(fc.array(anyPlay, { minLength: 1, maxLength: 3 }), fc.integer({ min: 1, max: 6 })), { maxLength: 8 })
  .map((rounds) => rounds.flatMap(([round, laps]) => Array.from({ length: laps }, () => round).flat()));

describe("the judgements of a turn", () => {
  it("are the same when another process goes on with it from what was stored", () => {
    let haltCount = 0;
    let repeatCount = 0;
    fc.assert(
      fc.property(anyPlays, fc.nat(40), (plays, cut) => {
        const whole = play(plays);
        const resumed = new Guardrails({ hardStop: true });
        for (const [index, { name = "t", input = {}, status = "ok", output = "r", traits }] of plays
          .slice(0, cut)
          .entries()) {
          const repeats = whole[index]?.repeats;
          resumed.stepBegins();
          // What is stored of a repeated result is its stub.
          resumed.replay(
            { callId: `c${index}`, name, input, traits },
            { status, output: repeats === undefined ? output : "stub", repeats },
          );
        }
        expect(play(plays.slice(cut), resumed, cut)).toEqual(whole.slice(cut));
        haltCount += whole.filter(({ halt }) => halt).length;
        repeatCount += whole.slice(cut).filter(({ repeats }) => repeats).length;
      }),
      { numRuns: 300 },
    );
    expect(haltCount).toBeGreaterThan(20);
    expect(repeatCount).toBeGreaterThan(20);
  });

  it("never end one before a rule has counted its full number, and always tell the model first", () => {
    fc.assert(
      fc.property(anyPlays, (plays) => {
        const judgements = play(plays);
        const ending = end(judgements);
        if (!ending) return;
        const [count, rule] = ending;
        expect(count).toBeGreaterThanOrEqual(guardThresholds[rule].halt);
        expect(judgements.slice(0, count - 1).some(({ note }) => note !== undefined)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it("do not depend on the order of an object's keys", () => {
    const plays = times(5, (index) => ({
      input: index % 2 === 0 ? { a: 1, b: [{ c: 1, d: 2 }] } : { b: [{ d: 2, c: 1 }], a: 1 },
    }));
    expect(end(play(plays))).toEqual([5, "identical-calls"]);
  });
});
