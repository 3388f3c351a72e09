/** Visits every page once and hands every row that can be told as one of ours to the keeper. */
import type { Findings } from "./findings.ts";
import { indexRecords, isBroken, leafCells, OverflowReader } from "./leaf-cells.ts";
import type { BrokenCell, Cell } from "./leaf-cells.ts";
import { pageHeaderOf } from "./page-header.ts";
import type { PageHeader } from "./page-header.ts";
import type { PageImage } from "./page-image.ts";
import type { PageOwners } from "./page-owners.ts";
import type { RowKeeper } from "./row-keeper.ts";
import type { SessionNames } from "./session-names.ts";
import type { TableShape, TableShapes } from "./table-shape.ts";

/** What SQLite itself allows a row. */
const rowByteCountMax = 1_000_000_000;
/** The byte that SQLite locks stands on a page of its own, which is never used. */
const lockByte = 0x4000_0000;

export interface WalkParts {
  readonly image: PageImage;
  readonly owners: PageOwners;
  readonly shapes: TableShapes;
  readonly keeper: RowKeeper;
  readonly names: SessionNames;
  readonly findings: Findings;
}

function tableOf(owner: string | undefined): { readonly table?: string } {
  return owner === undefined ? {} : { table: owner };
}

export class PageWalker {
  readonly #parts: WalkParts;
  readonly #overflow: OverflowReader;
  readonly #byteCountMax: number;
  /** Pages that are no b-tree's: rows may go on over them, and then they are accounted for. */
  readonly #others: number[] = [];

  constructor(parts: WalkParts) {
    this.#parts = parts;
    this.#overflow = new OverflowReader(parts.image);
    this.#byteCountMax = Math.min(rowByteCountMax, parts.image.pageCount * parts.image.pageSize);
  }

  visit(number: number): void {
    const { image, owners, names } = this.#parts;
    if (owners.isFree(number)) return;
    const owner = owners.ownerOf(number);
    const page = image.page(number);
    if (!page) {
      this.#leaveUnread(number, "the file ends before it does");
      return;
    }
    const header = pageHeaderOf(page, number);
    if (!header) this.#others.push(number);
    else if (header.kind === "table-leaf") this.#readLeaf(number, page, header);
    else if (header.kind !== "table-interior" && names.isFor(owner)) names.note(owner, indexRecords(page, header));
  }

  /** Tells which pages could be made nothing of, once all rows were read. */
  finish(): void {
    const { image } = this.#parts;
    const lockPage = Math.floor(lockByte / image.pageSize) + 1;
    for (const number of this.#others) {
      if (this.#overflow.seen[number] === 1 || number === lockPage) continue;
      this.#leaveUnread(number, "it is no page of a table, and no row goes on there");
    }
  }

  #leaveUnread(page: number, reason: string): void {
    const { owners, shapes, findings } = this.#parts;
    const owner = owners.ownerOf(page);
    // Of the schema nothing is brought either, but with it goes which pages are free.
    const isDerived = owner !== undefined && page !== 1 && !shapes.brought.includes(owner);
    findings.leaveUnread({ page, ...tableOf(owner), ...(isDerived ? { isDerived } : {}), reason });
  }

  #readLeaf(number: number, page: Buffer, header: PageHeader): void {
    const { owners, shapes } = this.#parts;
    const owner = owners.ownerOf(number);
    const cells = leafCells(page, header, this.#byteCountMax);
    const shape = this.#shapeOf(cells, owner);
    if (shape?.isDerived || (!shape && owner !== undefined && !shapes.brought.includes(owner))) return;
    for (const cell of cells) {
      if (isBroken(cell)) this.#refuse(number, cell, cell.reason, shape);
      else if (!shape || !shapes.fitting(cell.record.serials).includes(shape))
        this.#refuse(number, cell, "its values fit no table, or several", shape);
      else {
        const values = this.#overflow.valuesOf(cell);
        if (typeof values === "string") this.#refuse(number, cell, values, shape);
        else this.#parts.keeper.keep(shape, { page: number, cell: cell.index, row: cell.rowid }, values);
      }
    }
  }

  /** All rows of a page belong to one table: the one that most of them fit, and among equals the one that reaches it. */
  #shapeOf(cells: readonly (Cell | BrokenCell)[], owner: string | undefined): TableShape | undefined {
    const votes = new Map<TableShape, number>();
    for (const cell of cells) {
      if (isBroken(cell)) continue;
      for (const shape of this.#parts.shapes.fitting(cell.record.serials))
        votes.set(shape, (votes.get(shape) ?? 0) + 1);
    }
    const most = Math.max(0, ...votes.values());
    const best = [...votes].filter(([, count]) => count === most).map(([shape]) => shape);
    if (best.length === 1) return best[0];
    const ours = best.filter(({ isDerived }) => !isDerived);
    return best.find(({ table }) => table === owner) ?? (ours.length === 1 ? ours[0] : undefined);
  }

  #refuse(page: number, cell: Cell | BrokenCell, reason: string, shape: TableShape | undefined): void {
    this.#parts.findings.refuse({
      ...(shape ? { table: shape.table } : {}),
      page,
      cell: cell.index,
      ...(cell.rowid === undefined ? {} : { row: cell.rowid }),
      reason,
    });
  }
}
