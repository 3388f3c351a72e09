import fc from "fast-check";
import { expect, it } from "vitest";
import { cellWidth } from "../src/display/cell-width.ts";
import { wordLines } from "../src/display/word-lines.ts";

it("no word is lost or broken, and a line is too wide only for a word that is", () => {
  const word = fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => text.replaceAll(/\s/gu, ""));
  fc.assert(
    fc.property(
      fc.array(word, { maxLength: 30 }),
      fc.nat(4),
      fc.integer({ min: 8, max: 40 }),
      (words, indent, width) => {
        const margin = " ".repeat(indent);
        const sentence = margin + ["a", ...words].join(" ");
        const lines = wordLines(sentence, width);
        expect(lines.map((line) => line.slice(indent)).join(" ")).toBe(sentence.slice(indent));
        for (const line of lines) {
          expect(line.startsWith(margin)).toBe(true);
          if (cellWidth(line) > width) expect(line.slice(indent)).not.toContain(" ");
        }
      },
    ),
  );
});
