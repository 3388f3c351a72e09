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
  reach: fc.option(fc.record({ offset: fc.nat({ max: 90 }), rowCount: fc.nat({ max: 4 }) }), { nil: undefined }),
});

it("an edited text has the rows that it would have were it laid out whole, as far as they are asked for", () => {
  let keptCount = 0;
  let shortCount = 0;
  fc.assert(
    fc.property(text, fc.array(edit, { maxLength: 12 }), (first, edits) => {
      const layout = new TextLayout();
      let current = first;
      let rows = [...layout.rowsOf(current, 4)];
      for (const { at, removed, inserted, columns, reach } of edits) {
        const offset = Math.floor(at * (current.length + 1));
        current = current.slice(0, offset) + inserted + current.slice(offset + removed);
        const before = rows;
        rows = [...layout.rowsOf(current, columns, reach)];
        const whole = textRows(current, columns);
        expect(rows).toEqual(whole.slice(0, rows.length));
        const wanted = reach
          ? whole.findLastIndex(({ start }) => start <= reach.offset) + 1 + reach.rowCount
          : Infinity;
        expect(rows.length).toBeGreaterThanOrEqual(Math.min(whole.length, wanted));
        if (rows.length < whole.length) shortCount++;
        keptCount += rows.filter((row, index) => row === before[index]).length;
      }
    }),
    { numRuns: 3000 },
  );
  // Else the layout was made anew each time, and nothing was shown.
  expect(keptCount).toBeGreaterThan(1000);
  expect(shortCount).toBeGreaterThan(1000);
});

it("what stands before an edit is not laid out again, nor what was not edited", () => {
  const layout = new TextLayout();
  const long = "漢字 and e\u0301 ".repeat(1000);
  const before = [...layout.rowsOf(long, 40)];
  expect(layout.rowsOf(long, 40).every((row, index) => row === before[index])).toBe(true);
  const after = layout.rowsOf(`${long}x`, 40);
  expect(after.filter((row, index) => row === before[index]).length).toBeGreaterThanOrEqual(before.length - 3);
  expect(layout.rowsOf("", 40)).toEqual(textRows("", 40));
});

it("a key in the middle of a very long line lays out what is shown of it, and no more", () => {
  for (const piece of ["漢字 and e\u0301 ", "words and words "]) {
    const layout = new TextLayout();
    const half = piece.repeat(20_000);
    let typed = "";
    // Whoever stands there came from the end.
    const known = new Set(layout.rowsOf(half + half, 40));
    expect(known.size).toBeGreaterThan(10_000);
    for (const key of "typed here") {
      typed += key;
      const reach = { offset: half.length + typed.length, rowCount: 20 };
      const made = layout.rowsOf(half + typed + half, 40, reach).filter((row) => !known.has(row));
      expect(made.length).toBeGreaterThan(20);
      // Those shown, that of the cursor, and three around the change.
      expect(made.length).toBeLessThanOrEqual(25);
      for (const row of made) known.add(row);
    }
  }
});

it("a line of a mebibyte has its rows on the narrowest terminal", () => {
  expect(textRows("a".repeat(1_048_576), 2)).toHaveLength(524_288);
});
