import { textRows } from "./text-rows.ts";
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

/**
 * The rows of a text that is edited: what stands before the row of the first change is not laid out again, so typing
 * and pasting at the end of a long text cost what they do in a short one.
 */
export class TextLayout {
  #text = "";
  #columns = 0;
  #rows: readonly TextRow[] = textRows("", 1);

  rowsOf(text: string, columns: number): readonly TextRow[] {
    if (columns === this.#columns && text === this.#text) return this.#rows;
    const kept = columns === this.#columns ? this.#unchanged(text) : 0;
    const from = kept === 0 ? 0 : (this.#rows[kept]?.start ?? 0);
    const anew = textRows(text.slice(from), columns).map((row) => ({
      ...row,
      start: row.start + from,
      end: row.end + from,
    }));
    this.#rows = this.#rows.slice(0, kept).concat(anew);
    this.#text = text;
    this.#columns = columns;
    return this.#rows;
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
