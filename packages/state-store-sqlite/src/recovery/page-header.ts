/** How a page of a b-tree begins (https://sqlite.org/fileformat2.html#b_tree_pages). */

export type PageKind = "table-leaf" | "table-interior" | "index-leaf" | "index-interior";

export interface PageHeader {
  readonly kind: PageKind;
  /** Where the page's own header begins: behind the file's, on the first page. */
  readonly startsAt: number;
  readonly cellCount: number;
  /** Where the list of the cells' places begins. */
  readonly pointersAt: number;
}

const kinds: ReadonlyMap<number, PageKind> = new Map([
  [0x02, "index-interior"],
  [0x05, "table-interior"],
  [0x0a, "index-leaf"],
  [0x0d, "table-leaf"],
]);

export function isInterior(kind: PageKind): boolean {
  return kind === "table-interior" || kind === "index-interior";
}

/** Absent where the page is none of a b-tree, or its beginning makes no sense. */
export function pageHeaderOf(page: Buffer, number: number): PageHeader | undefined {
  const startsAt = number === 1 ? 100 : 0;
  const kind = kinds.get(page[startsAt] ?? 0);
  if (kind === undefined || page.length < 512) return undefined;
  const cellCount = page.readUInt16BE(startsAt + 3);
  const pointersAt = startsAt + (isInterior(kind) ? 12 : 8);
  if (pointersAt + 2 * cellCount > page.length) return undefined;
  return { kind, startsAt, cellCount, pointersAt };
}

/** Stricter, for guessing: the cells lie behind their list, and the header says so itself. */
export function isPageHeaderSane(page: Buffer, number: number): boolean {
  const header = pageHeaderOf(page, number);
  if (!header || header.cellCount === 0) return false;
  const contentAt = page.readUInt16BE(header.startsAt + 5) || 65_536;
  const pointersEnd = header.pointersAt + 2 * header.cellCount;
  return contentAt >= pointersEnd && contentAt <= page.length && page.readUInt16BE(header.pointersAt) >= contentAt;
}

/** The children of an interior page, in order, the right-most last. */
export function childrenOf(page: Buffer, header: PageHeader): number[] {
  const children: number[] = [];
  for (let index = 0; index < header.cellCount; index++) {
    const at = page.readUInt16BE(header.pointersAt + 2 * index);
    if (at + 4 <= page.length) children.push(page.readUInt32BE(at));
  }
  children.push(page.readUInt32BE(header.startsAt + 8));
  return children;
}
