import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cellWidth, fitting, graphemesOf, padded } from "../src/display/cell-width.ts";
import { diffLines } from "../src/display/diff-text.ts";
import { clipped, legible, printable, styleOf } from "../src/display/style.ts";

const plain = styleOf(false);
const coloured = styleOf(true);

describe("the width of text on a terminal", () => {
  it.each([
    ["ascii", 5],
    ["naïve", 5],
    ["nai\u0308ve", 5],
    ["日本語", 6],
    ["ﾊﾝｶｸ", 4],
    ["한글", 4],
    ["\u1112\u1161\u11ab", 2],
    ["👍", 2],
    ["👍🏽", 2],
    ["👩‍👩‍👧", 2],
    ["🇩🇪", 2],
    ["❤️", 2],
    ["❤", 1],
    ["a\u200bb", 2],
  ])("%s takes %i cells", (text, width) => {
    expect(cellWidth(text)).toBe(width);
  });

  it("characters are those that Unicode tells, but for a few rules of Indic scripts", () => {
    const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
    const letters = "aé日ﾞ가👍❤👩🇩🇪1-\u1112\u1161\u11ab\t\n\u2028 ";
    const marks = "\u0301\u0308\u200d\ufe0f\u{1f3fd}\u20e3\u094d\u093f\u200c\u{e0067}\u{e007f}";
    const part = fc.constantFrom(...Array.from(letters + marks));
    let joined = 0;
    fc.assert(
      fc.property(fc.string({ unit: part, maxLength: 12 }), (text) => {
        const characters = [...graphemesOf(text)];
        expect(characters).toEqual([...segmenter.segment(text)].map(({ segment }) => segment));
        if (characters.length < Array.from(text).length) joined++;
      }),
      { numRuns: 3000 },
    );
    expect(joined).toBeGreaterThan(1000);
  });

  it("text is cut between characters as people see them, never in the middle of one", () => {
    expect(fitting("日本語", 5)).toBe("日本");
    expect(fitting("a👩‍👩‍👧b", 2)).toBe("a");
    expect(fitting("a👩‍👩‍👧b", 3)).toBe("a👩‍👩‍👧");
    expect(fitting("nai\u0308ve", 3)).toBe("nai\u0308");
    expect(clipped("日本語です", 6)).toBe("日本…");
    expect(clipped("日本語", 6)).toBe("日本語");
    expect(padded("日本", 6)).toBe("日本  ");
  });
});

describe("text of others", () => {
  it("has nothing in it that moves the cursor, changes the terminal, or shows less than there is", () => {
    const evil =
      "\u001b[2J\u001b]0;title\u0007\u009b31m\u0090q\u009c\u0008\u000d\u202etxt\u2066x\u2069\u200b\ufeff\u2028\u{e0041}end";
    expect(printable(evil)).toBe("[2J]0;title31mqtxtxend");
  });

  it("keeps what scripts and emoji are written with", () => {
    for (const text of ["👩‍👩‍👧", "❤️", "می‌خواهم", "क्षि", "a\tb\nc"]) expect(printable(text)).toBe(text);
  });

  it("is shown as it is where a person decides on it", () => {
    expect(legible("rm\u001b[2K \u202efi\u200b")).toBe("rm\\u{1b}[2K \\u{202e}fi\\u{200b}");
  });
});

describe("a diff in a tool's result", () => {
  const diff = "Edited `a`: 1 replacement.\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three";

  it("is shown in colour, line by line", () => {
    expect(diffLines(diff, coloured, 80)).toEqual([
      `    ${coloured.cyan("@@ -1,3 +1,3 @@")}`,
      `    ${coloured.dim(" one")}`,
      `    ${coloured.red("-two")}`,
      `    ${coloured.green("+2")}`,
      `    ${coloured.dim(" three")}`,
    ]);
  });

  it("has its signs alone without colour, is cut at the terminal's edge, and ends after a screenful", () => {
    const long = `@@ -1,1 +1,60 @@\n-${"日".repeat(50)}\n${Array.from({ length: 60 }, () => "+\tx\u001b[2J").join("\n")}`;
    const lines = diffLines(long, plain, 40);
    expect(lines).toHaveLength(41);
    expect(lines[1]).toBe(`    -${"日".repeat(16)}…`);
    expect(lines[2]).toBe("    +    x[2J");
    expect(lines.at(-1)).toBe("    … 22 more lines");
    expect(lines.every((line) => cellWidth(line) < 40)).toBe(true);
  });

  it("is none where the result holds none", () => {
    for (const output of ["Edited.", { text: "@@ -1,1 +1,1 @@" }, "see @@ -1,1 +1,1 @@"])
      expect(diffLines(output, plain, 80)).toEqual([]);
  });
});
