import { describe, expect, it } from "vitest";
import type { Experiment } from "../src/experiment.ts";
import { judge } from "../src/verifier.ts";

const protocol: Experiment = { model: "claim", isLiveness: false };
const race: Experiment = { ...protocol, race: "SAY_ON_OBSERVATION", finds: "assertion violated isPublished" };

function output(facts: { errors: number; first?: string; unreached?: string; note?: string }): string {
  return [
    facts.first ?? "",
    facts.note ?? "",
    `State-vector 36 byte, depth reached 67, errors: ${facts.errors}`,
    "     3678 states, stored",
    "unreached in proctype Turn",
    facts.unreached ?? "",
    "\t(0 of 31 states)",
    "unreached in claim stuckIsStopped",
    '\t_spin_nvr.tmp:3, state 5, "(1)"',
    "\t(1 of 13 states)",
  ].join("\n");
}

describe("the verdict on a search", () => {
  it("is a proof when it was exhaustive, found nothing, and reached every statement of the processes", () => {
    expect(judge(protocol, output({ errors: 0 }))).toEqual({ isAsExpected: true, told: "proven in 3678 states" });
  });

  it("is none when it found an error, was cut short, or never got somewhere", () => {
    const broken = [
      output({ errors: 1, first: "pan:1: assertion violated isSaid (at depth 5)" }),
      output({ errors: 0, note: "error: max search depth too small" }),
      output({ errors: 0, unreached: '\t/models/claim.pml:80, state 9, "isOver = 1"' }),
      "pan: out of memory",
    ];
    for (const one of broken) expect(judge(protocol, one).isAsExpected).toBe(false);
  });

  it("on a race is as expected only when the assertion fails that names what it breaks", () => {
    const found = output({ errors: 1, first: "pan:1: assertion violated isPublished (at depth 5)" });
    const other = output({ errors: 1, first: "pan:1: assertion violated  !(isOver) (at depth 16)" });
    expect(judge(race, found).isAsExpected).toBe(true);
    expect(judge(race, other).isAsExpected).toBe(false);
    expect(judge(race, output({ errors: 0 })).isAsExpected).toBe(false);
  });
});
