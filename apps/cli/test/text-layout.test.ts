import fc from "fast-check";
import { expect, it } from "vitest";
import { TextLayout } from "../src/chat/editing/text-layout.ts";
import { textRows } from "../src/chat/editing/text-rows.ts";

/** Characters that join what stands before them, or half of one: where rows could come apart. */
const piece = fc.constantFrom(
  ..."a b漢\n\t".split(""),
  "\u0301",
  "\u200d",
  "👩",
  "👧",
  "🏽",
  "🇩",
  "🇪",
  "\ud83d",
  "\udc69",
  "한",
  "\u1100",
  "\u1161",
  "\u11a8",
  "abcdefgh",
);
const text = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(""));
const edit = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  removed: fc.nat({ max: 6 }),
  inserted: text,
  columns: fc.constantFrom(4, 4, 4, 7),
});

it("an edited text has the rows that it would have were it laid out whole", () => {
  let keptCount = 0;
  fc.assert(
    fc.property(text, fc.array(edit, { maxLength: 12 }), (first, edits) => {
      const layout = new TextLayout();
      let current = first;
      let rows = layout.rowsOf(current, 4);
      for (const { at, removed, inserted, columns } of edits) {
        const offset = Math.floor(at * (current.length + 1));
        current = current.slice(0, offset) + inserted + current.slice(offset + removed);
        const before = rows;
        rows = layout.rowsOf(current, columns);
        expect(rows).toEqual(textRows(current, columns));
        keptCount += rows.filter((row, index) => row === before[index]).length;
      }
    }),
    { numRuns: 2000 },
  );
  // Else the layout was made anew each time, and nothing was shown.
  expect(keptCount).toBeGreaterThan(1000);
});

it("what stands before an edit is not laid out again, nor what was not edited", () => {
  const layout = new TextLayout();
  const long = "漢字 and e\u0301 ".repeat(1000);
  const before = layout.rowsOf(long, 40);
  expect(layout.rowsOf(long, 40)).toBe(before);
  const after = layout.rowsOf(`${long}x`, 40);
  expect(after.filter((row, index) => row === before[index]).length).toBeGreaterThanOrEqual(before.length - 3);
  expect(layout.rowsOf("", 40)).toEqual(textRows("", 40));
});

it("a line of a mebibyte has its rows on the narrowest terminal", () => {
  expect(textRows("a".repeat(1_048_576), 2)).toHaveLength(524_288);
});
