/** Tells changes of a text as a unified diff, from the changes themselves: nothing is searched for. Pure. */

import type { TextChange } from "./text-edit.ts";

const contextLines = 3;

/** Lines of the old text, from `oldStart` to `oldEnd` (exclusive, from 0), that became other lines. */
interface LineChange {
  readonly oldStart: number;
  readonly oldEnd: number;
  readonly added: readonly string[];
}

/** Hunks only, without the two lines that name files. Changes stand in order and do not overlap. */
export function unifiedDiff(oldText: string, changes: readonly TextChange[]): string {
  const lines = linesOf(oldText);
  const lineChanges = lineChangesOf(oldText, lines, changes);
  const hunks: string[] = [];
  let shift = 0;
  for (let first = 0; first < lineChanges.length;) {
    let last = first;
    while (
      last + 1 < lineChanges.length &&
      lineChanges[last + 1]!.oldStart - lineChanges[last]!.oldEnd <= contextLines * 2
    ) {
      last += 1;
    }
    const hunk = hunkOf(lines, lineChanges.slice(first, last + 1), shift);
    hunks.push(hunk.text);
    shift = hunk.shift;
    first = last + 1;
  }
  return hunks.join("\n");
}

/** Each with its end, the last one perhaps without. */
function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function hunkOf(
  lines: readonly string[],
  changes: readonly LineChange[],
  shiftBefore: number,
): { readonly text: string; readonly shift: number } {
  const start = Math.max(0, changes[0]!.oldStart - contextLines);
  const end = Math.min(lines.length, changes.at(-1)!.oldEnd + contextLines);
  const body: string[] = [];
  let position = start;
  let shift = shiftBefore;
  for (const { oldStart, oldEnd, added } of changes) {
    body.push(...lines.slice(position, oldStart).map((line) => shown(" ", line)));
    body.push(...lines.slice(oldStart, oldEnd).map((line) => shown("-", line)));
    body.push(...added.map((line) => shown("+", line)));
    position = oldEnd;
    shift += added.length - (oldEnd - oldStart);
  }
  body.push(...lines.slice(position, end).map((line) => shown(" ", line)));
  const oldCount = end - start;
  const newCount = oldCount + shift - shiftBefore;
  const head = `@@ -${range(start, oldCount)} +${range(start + shiftBefore, newCount)} @@`;
  return { text: [head, ...body].join("\n"), shift };
}

/** As `diff -u` counts: from 1, and the line before where there is none. */
function range(start: number, count: number): string {
  return `${count === 0 ? start : start + 1},${count}`;
}

function shown(sign: " " | "-" | "+", line: string): string {
  return line.endsWith("\n") ? `${sign}${line.slice(0, -1)}` : `${sign}${line}\n\\ No newline at end of file`;
}

/** Widens changes to whole lines, joins those that share one, and takes out the lines that stayed the same. */
function lineChangesOf(text: string, lines: readonly string[], changes: readonly TextChange[]): readonly LineChange[] {
  const found: LineChange[] = [];
  let lineIndex = 0;
  let lineStart = 0;
  for (let index = 0; index < changes.length;) {
    while (lineIndex < lines.length && lineStart + lines[lineIndex]!.length <= changes[index]!.start) {
      lineStart += lines[lineIndex]!.length;
      lineIndex += 1;
    }
    const firstLine = lineIndex;
    const segmentStart = lineStart;
    let segment = "";
    let position = segmentStart;
    let endLine = lineIndex;
    let endOffset = segmentStart;
    // On through every change that begins inside the lines taken so far.
    do {
      const { start, end, replacement } = changes[index]!;
      segment += text.slice(position, start) + replacement;
      position = end;
      index += 1;
      // Up to the end of the line in which the change ends: what follows there is joined to the new text, except
      // where it both ends at a line's end and leaves one.
      const whole = (): boolean => endOffset === end && (segment === "" || segment.endsWith("\n"));
      while (endLine < lines.length && (endOffset < end || (endOffset === end && !whole()))) {
        endOffset += lines[endLine]!.length;
        endLine += 1;
      }
    } while (index < changes.length && changes[index]!.start < endOffset);
    segment += text.slice(position, endOffset);
    found.push(trimmed(lines, { oldStart: firstLine, oldEnd: endLine, added: linesOf(segment) }));
    lineIndex = endLine;
    lineStart = endOffset;
  }
  return found.filter(({ oldStart, oldEnd, added }) => oldEnd > oldStart || added.length > 0);
}

function trimmed(lines: readonly string[], { oldStart, oldEnd, added }: LineChange): LineChange {
  let front = 0;
  while (front < added.length && oldStart + front < oldEnd && lines[oldStart + front] === added[front]) front += 1;
  let back = 0;
  while (
    back < added.length - front &&
    back < oldEnd - oldStart - front &&
    lines[oldEnd - 1 - back] === added[added.length - 1 - back]
  ) {
    back += 1;
  }
  return { oldStart: oldStart + front, oldEnd: oldEnd - back, added: added.slice(front, added.length - back) };
}
