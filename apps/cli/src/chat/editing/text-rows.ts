import { graphemesOf, graphemeWidth } from "../../display/cell-width.ts";

/** One row of a terminal. `start` and `end` are where its text stands in the whole, without the line break. */
export interface TextRow {
  /** As it is drawn: what would move the cursor is written out. */
  readonly shown: string;
  /** In cells. */
  readonly width: number;
  readonly start: number;
  readonly end: number;
}

export interface CellPlace {
  readonly row: number;
  readonly column: number;
}

const tab = "    ";

const isFrequent = (grapheme: string): boolean =>
  /^[\x20-\x7e\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]$/.test(grapheme);

/** A character as a terminal can draw it in a known width. */
function drawn(grapheme: string): string {
  if (isFrequent(grapheme)) return grapheme;
  if (grapheme === "\t") return tab;
  if (/^\p{Cc}$/u.test(grapheme)) return `^${String.fromCharCode((grapheme.charCodeAt(0) & 0x7f) ^ 0x40)}`;
  return /^[\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff9-\ufffb]+$/u.test(grapheme) ? "·" : grapheme;
}

const drawnWidth = (grapheme: string): number => {
  const shown = drawn(grapheme);
  return shown === grapheme ? graphemeWidth(grapheme) : shown.length;
};

/** One line without line breaks as rows; an empty one has one row. */
function* rowsOfLine(line: string, offset: number, columns: number): Generator<TextRow, void> {
  if (/^[\x20-\x7e]*$/.test(line)) {
    for (let start = 0; start < line.length || start === 0; start += columns) {
      const shown = line.slice(start, start + columns);
      yield { shown, width: shown.length, start: offset + start, end: offset + start + shown.length };
    }
    return;
  }
  let shown = "";
  let width = 0;
  let start = offset;
  let end = offset;
  for (const grapheme of graphemesOf(line)) {
    const cells = drawnWidth(grapheme);
    // A wide character never stands astride the edge.
    if (width + cells > columns && width > 0) {
      yield { shown, width, start, end };
      [shown, width, start] = ["", 0, end];
    }
    shown += drawn(grapheme);
    width += cells;
    end += grapheme.length;
  }
  yield { shown, width, start, end };
}

/** The rows from an offset on at which a row begins, each as it is asked for. */
export function* rowsFrom(text: string, offset: number, columns: number): Generator<TextRow, void> {
  for (let start = offset; start <= text.length;) {
    const lineBreak = text.indexOf("\n", start);
    const end = lineBreak < 0 ? text.length : lineBreak;
    yield* rowsOfLine(text.slice(start, end), start, Math.max(2, columns));
    start = end + 1;
  }
}

/** A text as the rows of a terminal that is so many cells wide. */
export function textRows(text: string, columns: number): readonly TextRow[] {
  return Array.from(rowsFrom(text, 0, columns));
}

/** Where an offset of the text stands; at the end of a full row that goes on, at the beginning of the next one. */
export function placeOf(text: string, rows: readonly TextRow[], offset: number): CellPlace {
  const row = Math.max(
    0,
    rows.findLastIndex((one) => one.start <= offset),
  );
  const { start = 0 } = rows[row] ?? {};
  let column = 0;
  for (const grapheme of graphemesOf(text.slice(start, offset))) column += drawnWidth(grapheme);
  return { row, column };
}

/** The offset of the character that stands in a row at a column, or before it. */
export function offsetAt(text: string, rows: readonly TextRow[], { row, column }: CellPlace): number {
  const { start = 0, end = 0 } = rows[row] ?? {};
  // The end of a row that goes on is the beginning of the next one: then its last character.
  const last = rows[row + 1]?.start === end ? end - 1 : end;
  let offset = start;
  let width = 0;
  for (const grapheme of graphemesOf(text.slice(start, end))) {
    width += drawnWidth(grapheme);
    if (width > column || offset + grapheme.length > last) break;
    offset += grapheme.length;
  }
  return offset;
}
