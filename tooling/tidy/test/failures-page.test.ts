import { describe, expect, it } from "vitest";
import { failuresAreShown } from "../src/rules/failures-page.ts";
import { edited, findingsOf } from "./made-up-tree.ts";

const shown = "`packages/turn/test/turn.test.ts` › rule 7.1: a turn ends";
const page = (cell: string): Readonly<Record<string, string | undefined>> => edited("FAILURES.md", shown, cell);
const problemsOf = (cell: string): readonly string[] => findingsOf(failuresAreShown, page(cell));

describe("a row of FAILURES.md", () => {
  it("may name tests, suites and conformance cases, several and by their suite", () => {
    const suite = {
      "packages/turn/test/walk.test.ts": 'describe("a walk", () => {\n  it.each([1])("ends %i", () => {});\n});\n',
    };
    const cases = {
      "packages/ports/src/testing/cases.ts": 'export const one = { id: "TURN-1b", title: "it ends" };\n',
    };
    const named = [
      shown,
      "`packages/turn/test/walk.test.ts` › a walk › ends %i",
      "`packages/turn/test/walk.test.ts` › a walk",
      "`packages/ports/src/testing/cases.ts` › TURN-1b: it ends",
    ];
    expect(findingsOf(failuresAreShown, { ...page(named.join("<br>")), ...suite, ...cases })).toEqual([]);
  });

  it("is found out where it names no test, a file that is gone, or a title that nobody has", () => {
    const instead = "name the test that plays this schedule, as `path › suite › title`, or write one";
    expect(problemsOf("")).toEqual([`FAILURES.md:7: the row names no test; ${instead}`]);
    expect(problemsOf("`packages/turn/test/turn.test.ts`")).toEqual([
      `FAILURES.md:7: "packages/turn/test/turn.test.ts" names no test; ${instead}`,
    ]);
    expect(problemsOf("`packages/turn/test/gone.test.ts` › a turn ends")).toEqual([
      `FAILURES.md:7: there is no packages/turn/test/gone.test.ts; ${instead}`,
    ]);
    expect(problemsOf(`${shown}<br>\`packages/turn/test/turn.test.ts\` › a turn ends`)).toEqual([
      `FAILURES.md:7: packages/turn/test/turn.test.ts has no test or suite with the title "a turn ends"; ${instead}`,
    ]);
  });

  it("is found out when its test is renamed, and by no part of a title", () => {
    const renamed = edited("packages/turn/test/turn.test.ts", "rule 7.1: a turn ends", "rule 7.1: a turn ends at last");
    expect(findingsOf(failuresAreShown, renamed)).toHaveLength(1);
  });

  it("is no row where its table names no tests, and the page need not be there", () => {
    expect(findingsOf(failuresAreShown, edited("FAILURES.md", "| shown by |", "| seen |"))).toEqual([]);
    expect(findingsOf(failuresAreShown, { "FAILURES.md": undefined })).toEqual([]);
  });
});
