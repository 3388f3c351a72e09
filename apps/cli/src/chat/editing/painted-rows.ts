import type { Output } from "../../output.ts";
import type { CellPlace } from "./text-rows.ts";

/** A row as it is written, colours and all, and how many cells it takes. */
export interface PaintedRow {
  readonly text: string;
  readonly width: number;
}

const up = (count: number): string => (count > 0 ? `\u001b[${count}A` : "");
const down = (count: number): string => (count > 0 ? `\u001b[${count}B` : "");
const right = (count: number): string => (count > 0 ? `\u001b[${count}C` : "");
const vertically = (from: number, to: number): string => (from > to ? up(from - to) : down(to - from));
const below = "\u001b[J";
const restOfRow = "\u001b[K";

/**
 * Rows at the end of what stands on a terminal, painted over in place. Every row ends with a line break of its own and
 * leaves the last column free: terminals disagree about what a full row does, and one that is made wider must not join
 * them. Moves are relative, so nothing has to be known of what stands above.
 */
export class PaintedRows {
  readonly #output: Output;
  #rows: readonly PaintedRow[] = [];
  #cursor: CellPlace = { row: 0, column: 0 };
  #columns = 0;

  constructor(output: Output) {
    this.#output = output;
  }

  /** Paints in place of what was painted before; only what changed is sent. */
  paint(rows: readonly PaintedRow[], cursor: CellPlace): void {
    if (this.#rows.length > 0 && this.#columns !== this.#output.columns) this.erase();
    this.#columns = this.#output.columns;
    const { sent, at } = this.#changes(rows);
    const isThere = at.row === cursor.row && at.column === cursor.column;
    this.#output.write(isThere ? sent : `${sent}${vertically(at.row, cursor.row)}\r${right(cursor.column)}`);
    this.#rows = rows;
    this.#cursor = cursor;
  }

  /** Takes it off the terminal; the cursor stands where it began. */
  erase(): void {
    if (this.#rows.length > 0) this.#output.write(`${up(this.#rowsAbove())}\r${below}`);
    this.forget();
  }

  /** Leaves it there for good; the cursor goes below it. */
  leave(): void {
    if (this.#rows.length > 0) this.#output.write(`${down(this.#rows.length - 1 - this.#cursor.row)}\r\n`);
    this.forget();
  }

  /** What was painted is no longer there, or belongs to somebody else now. */
  forget(): void {
    this.#rows = [];
    this.#cursor = { row: 0, column: 0 };
  }

  /** What has to be written, and where the cursor stands then. */
  #changes(rows: readonly PaintedRow[]): { readonly sent: string; readonly at: CellPlace } {
    const before = this.#rows;
    const end = { row: rows.length - 1, column: rows.at(-1)?.width ?? 0 };
    const typed = this.#typedAtEnd(rows);
    if (typed !== undefined) return { sent: typed, at: end };
    let first = 0;
    while (first < before.length && first < rows.length && before[first]?.text === rows[first]?.text) first++;
    if (first === rows.length) {
      if (before.length === rows.length) return { sent: "", at: this.#cursor };
      return { sent: `${vertically(this.#cursor.row, end.row)}\r${right(end.column)}${below}`, at: end };
    }
    // A row below all that were painted is made by a line break, which scrolls where it must.
    const from = Math.min(first, Math.max(0, before.length - 1));
    const start = `${vertically(this.#cursor.row, from)}\r${from < first ? "\n" : ""}`;
    const changed = rows.slice(first).map(({ text }) => text);
    return { sent: `${start}${changed.join(`${restOfRow}\r\n`)}${below}`, at: end };
  }

  /** Typing at the end sends what was typed, and nothing else: over a slow line a message is not sent again for each key. */
  #typedAtEnd(rows: readonly PaintedRow[]): string | undefined {
    const last = this.#rows.length - 1;
    const [before, now] = [this.#rows[last], rows[last]];
    if (!before || !now || rows.length !== this.#rows.length) return undefined;
    if (this.#cursor.row !== last || this.#cursor.column !== before.width) return undefined;
    if (!now.text.startsWith(before.text) || !/^[\x20-\x7e]+$/.test(now.text.slice(before.text.length)))
      return undefined;
    for (let row = 0; row < last; row++) if (this.#rows[row]?.text !== rows[row]?.text) return undefined;
    return now.text.slice(before.text.length);
  }

  /**
   * How many rows of the terminal lie between its cursor and the first of ours. A terminal that was made narrower has
   * broken the rows that no longer fit, as most do; one that cuts them off instead has fewer.
   */
  #rowsAbove(): number {
    const columns = this.#output.columns;
    if (columns >= this.#columns) return this.#cursor.row;
    const broken = this.#rows
      .slice(0, this.#cursor.row)
      .reduce((sum, { width }) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    return broken + Math.floor(this.#cursor.column / columns);
  }
}
