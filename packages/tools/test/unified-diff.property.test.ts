import fc from "fast-check";
import { expect, test } from "vitest";
import { applyEdit } from "../src/text-edit.ts";
import { unifiedDiff } from "../src/unified-diff.ts";

/** Applies a diff as `patch` does, strictly: each line it takes or keeps must stand where it says. */
function patched(text: string, diff: string): string {
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const result: string[] = [];
  let position = 0;
  let newPosition = 0;
  const rows = diff.split("\n");
  for (let row = 0; row < rows.length;) {
    const head = /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/.exec(rows[row] ?? "");
    if (!head) throw new Error(`Not a hunk: ${rows[row]}`);
    const [oldStart = 0, oldCount = 0, newStart = 0, newCount = 0] = head.slice(1).map(Number);
    const start = oldCount === 0 ? oldStart : oldStart - 1;
    result.push(...lines.slice(position, start));
    newPosition += start - position;
    position = start;
    expect(newCount === 0 ? newStart : newStart - 1).toBe(newPosition);
    const counts = { old: 0, new: 0 };
    for (row += 1; row < rows.length && rows[row]?.startsWith("@@") !== true; row += 1) {
      const sign = rows[row]?.[0];
      const unended = rows[row + 1] === "\\ No newline at end of file";
      const line = `${rows[row]?.slice(1)}${unended ? "" : "\n"}`;
      if (unended) row += 1;
      if (sign !== "+") {
        expect(lines[position]).toBe(line);
        position += 1;
        counts.old += 1;
      }
      if (sign !== "-") {
        result.push(line);
        newPosition += 1;
        counts.new += 1;
      }
    }
    expect(counts).toEqual({ old: oldCount, new: newCount });
  }
  result.push(...lines.slice(position));
  return result.join("");
}

const piece = fc.constantFrom("a", "b", "ab", "\n", "a\n", "\nb", "c\nd", "\n\n");
// Mostly lines that nothing replaces, so that changes stand apart.
const spread = fc.oneof({ weight: 9, arbitrary: fc.constant("x\n") }, { weight: 1, arbitrary: piece });
const text = fc.array(spread, { minLength: 1, maxLength: 80, size: "max" }).map((pieces) => pieces.join(""));
const short = fc.array(piece, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join(""));

test("the diff of an edit, applied to the old text, gives the new one", () => {
  const reached = { edited: 0, severalHunks: 0, joinedLines: 0, lastLine: 0 };
  fc.assert(
    fc.property(
      text,
      fc.oneof(short, fc.constantFrom("\nb", "c\nd", "\n")),
      fc.oneof(short, fc.constant("")),
      (old, find, replace) => {
        const outcome = applyEdit(old, { find, replace, all: true });
        if (outcome.kind !== "edited") return;
        const diff = unifiedDiff(old, outcome.changes);
        reached.edited += 1;
        if (diff.split("@@ -").length > 2) reached.severalHunks += 1;
        if (find.includes("\n") && !replace.includes("\n")) reached.joinedLines += 1;
        if (diff.includes("\\ No newline")) reached.lastLine += 1;
        expect(diff === "" ? old : patched(old, diff)).toBe(outcome.text);
      },
    ),
    { numRuns: 2_000 },
  );
  for (const count of Object.values(reached)) expect(count).toBeGreaterThan(20);
});
