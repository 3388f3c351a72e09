import { describe, expect, it } from "vitest";
import { fencedBlocksOf, tableUnder } from "../src/markdown.ts";
import { changesetsSpeak } from "../src/rules/changesets.ts";
import { glossaryIsCurrent } from "../src/rules/glossary.ts";
import { noSilentSkips, testsAssert } from "../src/rules/honest-tests.ts";
import { noLooseEnds } from "../src/rules/loose-ends.ts";
import { plainWording } from "../src/rules/wording.ts";
import { edited, findingsOf } from "./made-up-tree.ts";

const testFile = "packages/turn/test/turn.test.ts";

describe("the glossary", () => {
  it("has identifiers that the owner's code uses", () => {
    expect(findingsOf(glossaryIsCurrent, edited("GLOSSARY.md", "`turn`", "`runTurn()`"))).toEqual([
      'GLOSSARY.md:7: "turn": turn knows no runTurn; write the identifier as it stands in the code',
    ]);
    expect(findingsOf(glossaryIsCurrent, edited("GLOSSARY.md", "`turn`", "`kernel`, `Port.at`"))).toEqual([]);
    expect(findingsOf(glossaryIsCurrent, edited("GLOSSARY.md", "| turn | `turn`", "| tern | `turn`"))[0]).toContain(
      "owned by tern, which does not exist",
    );
  });

  it("has one row a term, with every column filled", () => {
    expect(
      findingsOf(
        glossaryIsCurrent,
        edited(
          "GLOSSARY.md",
          "| turn | one run | a step |",
          "| turn | two runs | a step | turn | – |\n| turn | one run | |",
        ),
      ),
    ).toHaveLength(2);
    expect(findingsOf(glossaryIsCurrent, { "GLOSSARY.md": undefined })[0]).toContain("is missing");
    expect(findingsOf(glossaryIsCurrent, { "GLOSSARY.md": "# Glossary\n" })[0]).toContain('has no table under "Terms"');
  });
});

describe("tests", () => {
  it("are not focused, and do not skip in silence", () => {
    expect(findingsOf(noSilentSkips, { [testFile]: 'it.only("runs alone", () => {});' })[0]).toContain("is focused");
    for (const call of ["it.skip", "it.todo", "it.skipIf(true)", "describe.runIf(false)"]) {
      expect(findingsOf(noSilentSkips, { [testFile]: `${call}("is left out", () => {});` })[0]).toContain(
        "does not say why",
      );
      expect(
        findingsOf(noSilentSkips, {
          [testFile]: `// Needs /proc, which macOS has not.\n${call}("is left out", () => {});`,
        }),
      ).toEqual([]);
    }
  });

  it("may depend on a condition that has a name", () => {
    expect(findingsOf(noSilentSkips, { [testFile]: 'it.runIf(hasProcessTable)("ends them all", () => {});' })).toEqual(
      [],
    );
    expect(findingsOf(noSilentSkips, { [testFile]: 'describe.skipIf(!isThere)("recordings", () => {});' })).toEqual([]);
  });

  it("assert something", () => {
    expect(
      findingsOf(testsAssert, { [testFile]: 'import { it } from "vitest";\nit("expect nothing", () => {});' })[0],
    ).toContain("asserts nothing");
    for (const call of [
      "expect(1).toBe(1)",
      "assert.equal(1, 1)",
      "fc.assert(property)",
      "expectTypeOf(1).toBeNumber()",
    ]) {
      expect(findingsOf(testsAssert, { [testFile]: `it("asserts", () => { ${call}; });` })).toEqual([]);
    }
  });
});

describe("loose ends", () => {
  const source = "packages/turn/src/turn.ts";

  it("are not left in code: no place to finish, no compiler or lint switched off", () => {
    for (const words of [
      ["TO", "DO: later"],
      ["FIX", "ME"],
      ["@ts-", "ignore"],
      ["oxlint-", "disable-next-line"],
      ["@ts-", "expect-error: no"],
    ]) {
      expect(findingsOf(noLooseEnds, { [source]: `// ${words.join("")}` })).toHaveLength(1);
    }
  });

  it("let a test expect an error of types, when it says which", () => {
    expect(
      findingsOf(noLooseEnds, { [testFile]: `// ${["@ts-", "expect-error: a token is a number"].join("")}` }),
    ).toEqual([]);
    expect(findingsOf(noLooseEnds, { [testFile]: `// ${["@ts-", "expect-error"].join("")}` })).toHaveLength(1);
  });
});

describe("changesets", () => {
  const findings = (text: string): readonly string[] => findingsOf(changesetsSpeak, { ".changeset/turn.md": text });

  it("name published packages and speak in sentences", () => {
    expect(findings('---\n"@turnkeeper/turn": minor\n---\n\nRefuse a lease of zero milliseconds.\n')).toEqual([]);
    expect(findings("---\n---\n")).toEqual([]);
    expect(findings("No front matter.")[0]).toContain("has no front matter");
    expect(findings('---\n"@turnkeeper/tern": minor\n---\n\nRefuse it.\n')[0]).toContain(
      "names @turnkeeper/tern, which is not published",
    );
    expect(findings('---\n"@turnkeeper/turn": huge\n---\n\nRefuse it.\n')[0]).toContain(
      'write "NAME": major, minor or patch',
    );
    expect(findings('---\n"@turnkeeper/turn": patch\n---\n\nfixes\n')[0]).toContain("does not speak to the user");
  });
});

describe("wording", () => {
  // Put together here, so that this file does not hold what it looks for.
  const host = ["https://registry", "npmjs", "org"].join(".");
  const machinePath = ["", "home", "somebody", "checkout"].join("/");
  const signature = ["Co-authored", "by: somebody"].join("-");

  it("names no registry, no path of one machine, and not how it was made", () => {
    expect(findingsOf(plainWording, { "docs/a.md": `See ${host}/x.` })[0]).toContain(
      "docs/a.md:1: names a package registry",
    );
    expect(findingsOf(plainWording, { "docs/a.md": `\ncd ${machinePath}` })[0]).toContain(
      "docs/a.md:2: names a path of one machine",
    );
    expect(findingsOf(plainWording, { "docs/a.md": signature })[0]).toContain("speaks of how the text was made");
  });

  it("lets paths of packages and web addresses stand", () => {
    expect(
      findingsOf(plainWording, { "docs/a.md": "src/home/page.ts, https://example.org/home/a, ~/work/x, $HOME/tmp/x" }),
    ).toEqual([]);
  });
});

describe("Markdown", () => {
  it("is read outside its fences: a table in an example is an example", () => {
    const text =
      "# A\n\n```md\n## Terms\n| a |\n| - |\n| no |\n```\n\n## Terms\n\n| a | b |\n| --- | --- |\n| x \\| y | z |\n\ntext\n";
    expect(tableUnder(text, "Terms")).toEqual([{ line: 14, cells: { a: "x | y", b: "z" } }]);
    expect(fencedBlocksOf(text)).toEqual([
      { info: "md", text: "## Terms\n| a |\n| - |\n| no |", line: 3, heading: "A" },
    ]);
  });

  it("has no table where the heading or the table is missing", () => {
    expect(tableUnder("# A\n\n## B\n", "Terms")).toEqual([]);
    expect(tableUnder("# A\n\n## Terms\n\n## Next\n\n| a |\n| - |\n| 1 |\n", "Terms")).toEqual([]);
  });
});
