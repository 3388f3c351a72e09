import { cellWidth, fitting } from "./cell-width.ts";
import { printable } from "./style.ts";
import type { Style } from "./style.ts";

/** A screenful: the whole change stands in the transcript. */
const shownLinesMax = 40;

const hunkHead = /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/m;

/** One line of a diff in its colour, cut where the terminal ends, so that its sign stays the first thing of a line. */
export function diffLine(line: string, style: Style, columns: number): string {
  // A tab is as wide as its place makes it.
  const text = printable(line).replaceAll("\t", "    ");
  const shown = cellWidth(text) > columns ? `${fitting(text, columns - 1)}…` : text;
  if (shown.startsWith("+")) return style.green(shown);
  if (shown.startsWith("-")) return style.red(shown);
  return shown.startsWith("@@") ? style.cyan(shown) : style.dim(shown);
}

/** The hunks that a tool's result holds, in colour, behind a margin; nothing where it holds none. */
export function diffLines(output: unknown, style: Style, columns: number): readonly string[] {
  if (typeof output !== "string") return [];
  const start = output.search(hunkHead);
  if (start < 0) return [];
  const lines = output.slice(start).trimEnd().split("\n");
  const margin = "    ";
  const shown = lines
    .slice(0, shownLinesMax)
    .map((line) => margin + diffLine(line, style, columns - margin.length - 1));
  const rest = lines.length - shown.length;
  return rest > 0 ? [...shown, margin + style.dim(`… ${rest} more lines`)] : shown;
}
