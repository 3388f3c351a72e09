/**
 * Which table a page belongs to, as far as the file itself can still tell: from the schema's roots down through intact
 * interior pages. What is not reached this way is judged by its content, so a lost root loses no row.
 */
import { isBroken, leafCells, OverflowReader } from "./leaf-cells.ts";
import { childrenOf, isInterior, pageHeaderOf } from "./page-header.ts";
import type { PageImage } from "./page-image.ts";
import type { FoundValue } from "./record.ts";

/** A row of the schema: a table or an index and where its tree begins. */
interface SchemaEntry {
  readonly name: string;
  readonly root: number;
}

const unknownOwner = 0;
const freeOwner = 1;
const firstOwner = 2;
const ownerCountMax = 65_000;

export class PageOwners {
  readonly #owners: Uint16Array;
  readonly #names: string[] = [];
  readonly #image: PageImage;

  constructor(image: PageImage) {
    this.#image = image;
    this.#owners = new Uint16Array(image.pageCount + 1);
    const schema = this.#schema();
    for (const { name, root } of schema) this.#claimTree(name, root);
    this.#markFree();
  }

  /** The table or index whose tree reaches the page; absent when nothing tells. */
  ownerOf(page: number): string | undefined {
    const owner = this.#owners[page] ?? unknownOwner;
    return owner >= firstOwner ? this.#names[owner - firstOwner] : undefined;
  }

  /** Whether the file says, without contradiction, that nothing of the page counts any more. */
  isFree(page: number): boolean {
    return this.#owners[page] === freeOwner;
  }

  /** Every page of the tree, the root first; a page belongs to the first tree that reaches it. */
  #claimTree(name: string, root: number): number[] {
    const owner = firstOwner + this.#names.length;
    if (owner >= ownerCountMax) return [];
    this.#names.push(name);
    const claimed: number[] = [];
    const open = [root];
    for (let page = open.pop(); page !== undefined; page = open.pop()) {
      if (page < 1 || page > this.#image.pageCount || this.#owners[page] !== unknownOwner) continue;
      this.#owners[page] = owner;
      claimed.push(page);
      const bytes = this.#image.page(page);
      const header = bytes && pageHeaderOf(bytes, page);
      if (bytes && header && isInterior(header.kind)) open.push(...childrenOf(bytes, header).toReversed());
    }
    return claimed;
  }

  /** The schema's own tree begins on the first page. */
  #schema(): SchemaEntry[] {
    const overflow = new OverflowReader(this.#image);
    return this.#claimTree("sqlite_schema", 1).flatMap((number) => {
      const page = this.#image.page(number);
      const header = page && pageHeaderOf(page, number);
      if (!page || header?.kind !== "table-leaf") return [];
      return leafCells(page, header, this.#image.pageCount * page.length).flatMap((cell) => {
        const values = isBroken(cell) ? [] : overflow.valuesOf(cell);
        return typeof values === "string" ? [] : schemaEntry(values);
      });
    });
  }

  /**
   * The free list is believed only whole: as many pages as the first page says, each once, none of them in a tree. A
   * damaged one could name pages that hold rows.
   */
  #markFree(): void {
    const told = this.#image.header?.readUInt32BE(36) ?? 0;
    const free = new Set<number>();
    let trunk = this.#image.header?.readUInt32BE(32) ?? 0;
    while (trunk !== 0) {
      const page = this.#image.page(trunk);
      const leafCount = page?.readUInt32BE(4) ?? 0;
      if (!page || free.has(trunk) || leafCount > page.length / 4 - 2) return;
      free.add(trunk);
      for (let index = 0; index < leafCount; index++) free.add(page.readUInt32BE(8 + 4 * index));
      if (free.size > told) return;
      trunk = page.readUInt32BE(0);
    }
    if (free.size !== told) return;
    for (const page of free) if (this.#owners[page] !== unknownOwner) return;
    for (const page of free) this.#owners[page] = freeOwner;
  }
}

function schemaEntry([type, name, , root]: readonly FoundValue[]): SchemaEntry[] {
  if ((type !== "table" && type !== "index") || typeof name !== "string" || typeof root !== "number") return [];
  return root > 1 ? [{ name, root }] : [];
}
