import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MarkdownStream } from "../src/display/markdown-stream.ts";
import { styleOf } from "../src/display/style.ts";
import type { Style } from "../src/display/style.ts";

const mark =
  (name: string) =>
  (text: string): string =>
    text === "" ? "" : `<${name}>${text}</${name}>`;

/** Marks that a test can read. */
const style: Style = {
  ...styleOf(false),
  hasColour: true,
  bold: mark("b"),
  dim: mark("d"),
  italic: mark("i"),
  underline: mark("u"),
  strike: mark("s"),
  cyan: mark("c"),
};

function render(...pieces: readonly string[]): string {
  const stream = new MarkdownStream(style);
  return pieces.map((piece) => stream.write(piece)).join("") + stream.end();
}

/** What is looked like, without regard to how many pieces it was marked in. */
function joined(text: string): string {
  const shorter = text.replaceAll(/<\/(\w)><\1>/g, "");
  return shorter === text ? text : joined(shorter);
}

describe("Markdown on a terminal", () => {
  for (const [source, shown] of [
    ["plain text", "plain text"],
    ["**bold** and *italic* and ***both***", "<b>bold</b> and <i>italic</i> and <b><i>both</i></b>"],
    ["__bold__ and _italic_", "<b>bold</b> and <i>italic</i>"],
    ["~~gone~~", "<s>gone</s>"],
    ["`code` and ``a ` b``", "<c>code</c> and <c>a ` b</c>"],
    ["`**not bold**`", "<c>**not bold**</c>"],
    ["snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"],
    ["\\*literal\\* and C:\\path", "*literal* and C:\\path"],
    ["[label](http://x.y)", "<u>label</u> <d>(http://x.y)</d>"],
    ["[http://x.y](http://x.y)", "<u>http://x.y</u>"],
    ["a [bracket] and [an open one", "a [bracket] and [an open one"],
    ["# Title", "<u><b>Title</b></u>"],
    ["#hashtag", "#hashtag"],
    ["- one\n* two\n+ three", "<d>•</d> one\n<d>•</d> two\n<d>•</d> three"],
    ["1. one\n  2) two", "<d>1.</d> one\n  <d>2)</d> two"],
    ["> said", "<d>│ </d>said"],
    ["---", `<d>${"─".repeat(40)}</d>`],
    ["```ts\nconst a = `b` * **c**;\n```\nafter", "<d>```ts</d>\n<c>const a = `b` * **c**;</c>\n<d>```</d>\nafter"],
    ["~~~\n```\n~~~", "<d>~~~</d>\n<c>```</c>\n<d>~~~</d>"],
    ["**never closed\n\nnext", "<b>never closed</b>\n\nnext"],
    ["**over\nlines**", "<b>over</b>\n<b>lines</b>"],
    ["- **item\n- next", "<d>•</d> <b>item</b>\n<d>•</d> next"],
  ] as const) {
    it(`${JSON.stringify(source)}`, () => {
      expect(joined(render(source))).toBe(shown);
    });
  }

  it("shows words as they come, not only whole lines", () => {
    const stream = new MarkdownStream(style);
    expect(stream.write("The answer")).toBe("The answer");
    expect(stream.write(" is **fo")).toBe(" is <b>fo</b>");
    expect(stream.write("ur**")).toBe("<b>ur</b>");
    expect(stream.write(".")).toBe(".");
  });

  it("holds back only what the next character may change", () => {
    const stream = new MarkdownStream(style);
    expect(stream.write("#")).toBe("");
    expect(stream.write("# Ti")).toBe("<u><b>Ti</b></u>");
    expect(stream.write("tle\nfive *")).toBe("<u><b>tle</b></u>\nfive ");
    expect(stream.write(" six")).toBe("* six");
  });

  it("looks the same however the text was cut into pieces", () => {
    const word = fc.constantFrom(
      "**",
      "*",
      "_",
      "`",
      "``",
      "~~",
      "[a](b)",
      "[",
      "]",
      "(",
      ")",
      "\\",
      "#",
      "# ",
      "- ",
      "1. ",
      "> ",
      "```",
      "\n",
      "\n\n",
      " ",
      "word",
      "x",
      "---",
      "ü",
      "|",
    );
    let styledCount = 0;
    fc.assert(
      fc.property(fc.array(word, { maxLength: 40 }), fc.array(fc.nat(60), { maxLength: 8 }), (words, cuts) => {
        const text = words.join("");
        const places = [...new Set(cuts.filter((cut) => cut < text.length))].toSorted((left, right) => left - right);
        const pieces = [0, ...places].map((from, index) => text.slice(from, places[index]));
        const whole = joined(render(text));
        if (whole.includes("<")) styledCount++;
        expect(joined(render(...pieces))).toBe(whole);
      }),
      { numRuns: 1000 },
    );
    expect(styledCount).toBeGreaterThan(500);
  });

  it("loses no character of a text without marks", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "b", " ", "\n", ".", "é") }), (text) => {
        expect(render(text)).toBe(text);
      }),
    );
  });
});
