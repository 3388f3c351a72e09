/** The cells of a page: where each is, what it claims to hold, and its bytes when they are wanted. */
import type { PageHeader } from "./page-header.ts";
import type { PageImage } from "./page-image.ts";
import { readRecordHeader, readValues, readVarint } from "./record.ts";
import type { FoundValue, RecordHeader } from "./record.ts";

export interface Cell {
  readonly index: number;
  readonly rowid: number;
  readonly record: RecordHeader;
  /** How many bytes the record has in all, how many of them on this page, and where. */
  readonly byteCount: number;
  readonly local: Buffer;
  /** The page on which the record goes on; 0 when all of it is here. */
  readonly overflowPage: number;
}

export interface BrokenCell {
  readonly index: number;
  readonly rowid?: number;
  readonly reason: string;
}

export function isBroken(cell: Cell | BrokenCell): cell is BrokenCell {
  return "reason" in cell;
}

/** How much of a record stays on its page. `usable` is the page's size: stores of this package reserve nothing. */
function localByteCount(byteCount: number, usable: number, most: number): number {
  if (byteCount <= most) return byteCount;
  const least = Math.floor(((usable - 12) * 32) / 255) - 23;
  const wanted = least + ((byteCount - least) % (usable - 4));
  return wanted <= most ? wanted : least;
}

function tableCell(page: Buffer, at: number, index: number, byteCountMax: number): Cell | BrokenCell {
  const size = readVarint(page, at);
  const rowid = size && readVarint(page, size.end);
  if (!rowid || size.value === 0 || size.value > byteCountMax)
    return { index, reason: "the cell has no size or row number that makes sense" };
  const byteCount = size.value;
  const localCount = localByteCount(byteCount, page.length, page.length - 35);
  const end = rowid.end + localCount;
  const hasMore = localCount < byteCount;
  const record =
    end + (hasMore ? 4 : 0) <= page.length ? readRecordHeader(page.subarray(rowid.end, end), byteCount) : undefined;
  if (!record) return { index, rowid: rowid.value, reason: "the cell holds no record" };
  const local = page.subarray(rowid.end, end);
  return { index, rowid: rowid.value, record, byteCount, local, overflowPage: hasMore ? page.readUInt32BE(end) : 0 };
}

/** Row numbers of a page only grow; where both neighbours agree, the one between them is wrong. */
function refuseDisorder(cells: (Cell | BrokenCell)[]): void {
  for (let index = 1; index + 1 < cells.length; index++) {
    const [before, cell, after] = [cells[index - 1], cells[index], cells[index + 1]];
    if (before?.rowid === undefined || cell?.rowid === undefined || after?.rowid === undefined) continue;
    if (isBroken(cell) || before.rowid >= after.rowid) continue;
    if (cell.rowid <= before.rowid || cell.rowid >= after.rowid)
      cells[index] = { index, rowid: cell.rowid, reason: "its row number does not lie between its neighbours'" };
  }
}

/** Every cell of a leaf of a table. */
export function leafCells(page: Buffer, header: PageHeader, byteCountMax: number): (Cell | BrokenCell)[] {
  const cells: (Cell | BrokenCell)[] = [];
  const pointersEnd = header.pointersAt + 2 * header.cellCount;
  for (let index = 0; index < header.cellCount; index++) {
    const at = page.readUInt16BE(header.pointersAt + 2 * index);
    cells.push(
      at >= pointersEnd && at < page.length
        ? tableCell(page, at, index, byteCountMax)
        : { index, reason: "the page does not say where the cell is" },
    );
  }
  refuseDisorder(cells);
  return cells;
}

/** The records of an index's page that are wholly on it. */
export function indexRecords(page: Buffer, header: PageHeader): FoundValue[][] {
  const records: FoundValue[][] = [];
  const most = Math.floor(((page.length - 12) * 64) / 255) - 23;
  for (let index = 0; index < header.cellCount; index++) {
    const at = page.readUInt16BE(header.pointersAt + 2 * index) + (header.kind === "index-interior" ? 4 : 0);
    const size = readVarint(page, at);
    if (!size || size.value > most || size.end + size.value > page.length) continue;
    const bytes = page.subarray(size.end, size.end + size.value);
    const record = readRecordHeader(bytes, bytes.length);
    const values = record && readValues(bytes, record);
    if (values) records.push(values);
  }
  return records;
}

/** Reads records that go on over other pages. */
export class OverflowReader {
  readonly #image: PageImage;
  /** Pages that held the rest of a record. */
  readonly seen: Uint8Array;
  /** No chain of a healthy file is read more than a few times; without a bound, crossed chains cost the square. */
  #pagesLeft: number;

  constructor(image: PageImage) {
    this.#image = image;
    this.seen = new Uint8Array(image.pageCount + 1);
    this.#pagesLeft = 8 * image.pageCount + 1000;
  }

  /** The values of a cell, or why there are none. */
  valuesOf(cell: Cell): FoundValue[] | string {
    const bytes = cell.overflowPage === 0 ? cell.local : this.#wholeOf(cell);
    if (typeof bytes === "string") return bytes;
    return readValues(bytes, cell.record) ?? "a text of it is no UTF-8";
  }

  #wholeOf({ local, byteCount, overflowPage }: Cell): Buffer | string {
    const parts = [local];
    let left = byteCount - local.length;
    let next = overflowPage;
    const pages: number[] = [];
    while (left > 0) {
      const page = this.#pagesLeft-- > 0 ? this.#image.page(next) : undefined;
      if (!page) return `the record goes on at page ${next}, which cannot be read`;
      const taken = Math.min(left, page.length - 4);
      parts.push(page.subarray(4, 4 + taken));
      pages.push(next);
      left -= taken;
      next = page.readUInt32BE(0);
      if (left > 0 !== next > 0) return `the record breaks off at page ${pages.at(-1)}`;
    }
    for (const page of pages) this.seen[page] = 1;
    return Buffer.concat(parts, byteCount);
  }
}
