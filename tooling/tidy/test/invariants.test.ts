import { describe, expect, it } from "vitest";
import { invariantOwners, invariantWitnesses } from "../src/rules/invariants.ts";
import { protocolRulesShown } from "../src/rules/protocol-rules.ts";
import { edited, findingsOf } from "./made-up-tree.ts";

const owner = "packages/turn/src/turn.ts";
const witness = "packages/turn/test/turn.test.ts";

describe("owners", () => {
  it("are missed when no header names the id", () => {
    expect(findingsOf(invariantOwners, edited(owner, "Owns TURN-1", "Keeps TURN-1"))).toEqual([
      `ARCHITECTURE.md:17: no module header owns TURN-1; write "Owns TURN-1: ..." into the header of the file that keeps it (${owner})`,
    ]);
  });

  it("are one: a second header is told who the owner is", () => {
    const second = { "packages/turn/src/walk.ts": "/** Owns TURN-1: as well. */\nexport const walk = 1;\n" };
    expect(findingsOf(invariantOwners, second)[0]).toContain(
      `packages/turn/src/walk.ts:1: ${owner} owns TURN-1 already`,
    );
  });

  it("live in the package and the file that the table names", () => {
    const moved = {
      ...edited(owner, "Owns", "Keeps"),
      "packages/kernel/src/index.ts": "/** Owns TURN-1: here. */\nexport {};\n",
    };
    expect(findingsOf(invariantOwners, moved)).toEqual([
      "packages/kernel/src/index.ts:1: TURN-1 belongs to turn; move the header there, or change the table with a reason",
    ]);
    const renamed = edited("ARCHITECTURE.md", "`packages/turn/src/turn.ts`", "`packages/turn/src/step.ts`");
    expect(findingsOf(invariantOwners, renamed)[0]).toContain(
      `TURN-1 is owned by ${owner}, the table says packages/turn/src/step.ts; write ${owner}`,
    );
  });

  it("may be any of several packages, or any adapter of a family", () => {
    expect(
      findingsOf(invariantOwners, edited("ARCHITECTURE.md", "| turn | `packages", "| kernel, turn | `packages")),
    ).toEqual([]);
    expect(findingsOf(invariantOwners, edited("ARCHITECTURE.md", "| turn | `packages", "| tu* | `packages"))).toEqual(
      [],
    );
  });

  it("stand in the header of the file, not further down, and name ids of the table", () => {
    expect(
      findingsOf(invariantOwners, edited(owner, "export const", "// Owns TURN-1: here.\nexport const")),
    ).toHaveLength(2);
    expect(
      findingsOf(invariantOwners, edited(owner, "Owns TURN-1: one", "Owns TURN-9, Owns TURN-1: one"))[0],
    ).toContain("TURN-9 is no invariant of ARCHITECTURE.md");
    const long = edited(owner, " * The turn.", `${" * On and on.\n".repeat(45)} * The turn.`);
    expect(findingsOf(invariantOwners, long)[0]).toContain("the module header has 48 lines; at most 40");
  });

  it("do not exist yet for what is planned, and a status is one of two words", () => {
    expect(findingsOf(invariantOwners, edited(owner, "Owns TURN-1", "Owns TURN-2: soon. Owns TURN-1"))[0]).toContain(
      "TURN-2 is planned, and this header claims to keep it",
    );
    expect(findingsOf(invariantOwners, edited("ARCHITECTURE.md", "| planned |", "| soon |")).join()).toContain(
      'TURN-2 has the status "soon"; write kept or planned',
    );
  });
});

describe("witnesses", () => {
  it("are missed by id, and so are their controls", () => {
    expect(findingsOf(invariantWitnesses, edited(witness, "TURN-1: one", "one"))).toEqual([
      'ARCHITECTURE.md:17: no test title begins with "TURN-1: "; title the test that shows it "TURN-1: <the rule in the present tense>"',
    ]);
    expect(findingsOf(invariantWitnesses, edited(witness, "TURN-1 control: without", "without"))[0]).toContain(
      "TURN-1 has no control test",
    );
  });

  it("stand in the file that the table names", () => {
    expect(
      findingsOf(invariantWitnesses, edited("ARCHITECTURE.md", "`packages/turn/test/turn.test.ts`", "–"))[0],
    ).toContain(`TURN-1 is witnessed by ${witness}, the table says nothing; write ${witness}`);
  });

  it("may be conformance cases, which are data", () => {
    const cases = {
      ...edited(witness, "TURN-1: one", "one"),
      "packages/turn/src/testing/cases.ts":
        'export const cases = [{ id: "TURN-1", title: "one turn at a time", run: async () => {} }];\n',
      ...edited("ARCHITECTURE.md", "`packages/turn/test/turn.test.ts`", "`packages/turn/src/testing/cases.ts`"),
    };
    expect(findingsOf(invariantWitnesses, cases)).toEqual([]);
  });

  it("name ids of the table", () => {
    expect(
      findingsOf(
        invariantWitnesses,
        edited(witness, 'it("TURN-1: one', 'it("TURN-7: no such rule", () => {});\nit("TURN-1: one'),
      )[0],
    ).toContain("names TURN-7, which is no invariant");
  });
});

describe("rules of the protocol", () => {
  it("are missed by number where no title of a test or a suite begins with it", () => {
    expect(findingsOf(protocolRulesShown, edited(witness, "rule 7.1: a turn", "a turn"))[0]).toContain(
      'no test title begins with "rule 7.1: "',
    );
    const suite = edited(witness, 'it("rule 7.1: a turn ends"', 'describe("rule 7.1: a turn"');
    expect(findingsOf(protocolRulesShown, suite)).toEqual([]);
  });

  it("are not shown before they have begun, nor by a number that is none", () => {
    expect(findingsOf(protocolRulesShown, edited(witness, "rule 7.1: a", "rule 7.2: a")).join()).toContain(
      "shows rule 7.2, which has not begun",
    );
    expect(findingsOf(protocolRulesShown, edited(witness, "rule 7.1: a", "rule 7.8: a")).join()).toContain(
      "shows rule 7.8, which does not exist",
    );
    expect(
      findingsOf(protocolRulesShown, edited("ARCHITECTURE.md", "Rules 7.2 (space)", "Rules 7.3 (space)"))[0],
    ).toContain('no test title begins with "rule 7.2: "');
  });
});
