import { rowsFrom } from "./text-rows.ts";
import type { TextRow } from "./text-rows.ts";

const stepLength = 4096;

/** How far two texts are the same; never to the middle of a character of two code units. */
function commonLength(left: string, right: string): number {
  const most = Math.min(left.length, right.length);
  let length = 0;
  while (length < most && left.slice(length, length + stepLength) === right.slice(length, length + stepLength))
    length += stepLength;
  length = Math.min(length, most);
  while (length < most && left.charCodeAt(length) === right.charCodeAt(length)) length++;
  const isHalf = length > 0 && /[\ud800-\udbff]/.test(left[length - 1] ?? "");
  return isHalf ? length - 1 : length;
}

/** How far rows are wanted: so many behind the one in which an offset stands. */
export interface LayoutReach {
  readonly offset: number;
  readonly rowCount: number;
}

const everything: LayoutReach = Object.freeze({ offset: Number.POSITIVE_INFINITY, rowCount: 0 });

/**
 * The rows of a text that is edited, as far as they are asked for: what stands before the row of the first change is not
 * laid out again, and what stands behind the rows that are shown is not laid out at all. So a key costs the same in a short
 * text and anywhere in a long one.
 */
export class TextLayout {
  #text = "";
  #columns = 0;
  readonly #rows: TextRow[] = [];
  /** The rows behind those; nothing once there are no more. */
  #rest: Iterator<TextRow, void> | undefined = rowsFrom("", 0, 1);

  /** The first rows of the text, as far as `reach` at least; they change with the next call. */
  rowsOf(text: string, columns: number, { offset, rowCount }: LayoutReach = everything): readonly TextRow[] {
    if (columns !== this.#columns || text !== this.#text) this.#beginAnew(text, columns);
    while (this.#rest && !((this.#rows.at(-1 - rowCount)?.start ?? 0) > offset)) {
      const next = this.#rest.next();
      if (next.done) this.#rest = undefined;
      else this.#rows.push(next.value);
    }
    return this.#rows;
  }

  #beginAnew(text: string, columns: number): void {
    const kept = columns === this.#columns ? this.#unchanged(text) : 0;
    const from = kept === 0 ? 0 : (this.#rows[kept]?.start ?? 0);
    this.#rows.length = kept;
    this.#rest = rowsFrom(text, from, columns);
    this.#text = text;
    this.#columns = columns;
  }

  /**
   * How many rows begin and end as before. The row in which the first change stands does not, nor the one before it: it
   * ends where it does because of the character behind it, which may have been changed.
   */
  #unchanged(text: string): number {
    const change = commonLength(this.#text, text);
    return Math.max(0, this.#rows.findLastIndex((row) => row.start < change) - 1);
  }
}
