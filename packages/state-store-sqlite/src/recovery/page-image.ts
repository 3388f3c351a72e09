/** The pages of a store as of its last commit: the database file, under its log or its rollback journal. */
import { OfflineFile } from "./offline-file.ts";
import { isPageHeaderSane } from "./page-header.ts";
import { readJournal } from "./rollback-journal.ts";
import { readWal } from "./wal-frames.ts";
import type { WalFrames } from "./wal-frames.ts";

/** What this package's stores have; assumed where nothing tells. */
const usualPageSize = 4096;
const blockPageCount = 256;
const sampledPageCount = 512;
const magic = Buffer.from("SQLite format 3\0", "latin1");

/** The files that make up one store. */
export class SourceFiles {
  readonly database: OfflineFile;
  readonly wal: OfflineFile;
  readonly journal: OfflineFile;
  /** The log's index. Nothing of it is needed; it tells how long the log was. */
  readonly shm: OfflineFile;

  /** `withoutLog`: it is of another database. */
  constructor(path: string, { withoutLog = false }: { readonly withoutLog?: boolean } = {}) {
    this.database = new OfflineFile(path);
    this.wal = new OfflineFile(withoutLog ? undefined : `${path}-wal`);
    this.journal = new OfflineFile(`${path}-journal`);
    this.shm = new OfflineFile(withoutLog ? undefined : `${path}-shm`);
  }

  get byteCount(): number {
    return this.database.byteCount + this.wal.byteCount + this.journal.byteCount;
  }

  areUnchanged(): boolean {
    return [this.database, this.wal, this.journal].every((file) => file.isUnchanged());
  }

  close(): void {
    for (const file of [this.database, this.wal, this.journal, this.shm]) file.close();
  }
}

/** How many pages of the file begin as a page of a b-tree does, were they of this size. */
function fittingCount(database: OfflineFile, pageSize: number): number {
  let count = 0;
  for (let page = 1; page <= sampledPageCount && page * pageSize <= database.byteCount; page++)
    if (isPageHeaderSane(database.read((page - 1) * pageSize, pageSize), page)) count++;
  return count * pageSize;
}

function pageSizeOf(database: OfflineFile, told: readonly (number | undefined)[]): number {
  const header = database.read(16, 2);
  const inHeader = header.length === 2 ? header.readUInt16BE(0) : 0;
  const choices = [...told, inHeader === 1 ? 65_536 : inHeader, usualPageSize]
    .filter((size) => size !== undefined)
    .filter((size) => size >= 512 && size <= 65_536 && (size & (size - 1)) === 0);
  const scored = [...new Set(choices)].map((size) => ({ size, score: fittingCount(database, size) }));
  return scored.toSorted((left, right) => right.score - left.score)[0]?.size ?? usualPageSize;
}

export class PageImage {
  readonly pageSize: number;
  readonly pageCount: number;
  readonly wal: WalFrames | undefined;
  readonly #database: OfflineFile;
  readonly #overlay: OfflineFile;
  readonly #offsets: ReadonlyMap<number, number>;
  #block: Buffer = Buffer.alloc(0);
  #blockStart = 0;

  constructor({ database, wal, journal }: SourceFiles) {
    const old = readJournal(journal);
    this.pageSize = pageSizeOf(database, [old?.pageSize]);
    // A log and a journal do not stand side by side; should they, the journal is the older.
    const frames = readWal(wal, [this.pageSize, usualPageSize]);
    this.wal = frames?.usedFrameCount ? frames : undefined;
    if (this.wal) this.pageSize = this.wal.pageSize;
    this.#database = database;
    this.#overlay = this.wal ? wal : journal;
    this.#offsets = this.wal?.offsets ?? old?.offsets ?? new Map<number, number>();
    const inFile = Math.ceil(database.byteCount / this.pageSize);
    const inOverlay = [...this.#offsets.keys()].reduce((most, page) => Math.max(most, page), 0);
    const told = this.wal?.committedPageCount ?? old?.pageCount ?? inFile;
    this.pageCount = Math.min(told, Math.max(inFile, inOverlay));
  }

  /** What the first page says, where it is whole enough to say anything. */
  get header(): Buffer | undefined {
    const first = this.page(1);
    return first?.subarray(0, 16).equals(magic) ? first.subarray(0, 100) : undefined;
  }

  /** A whole page, counted from 1; absent where the file ends before it does. */
  page(number: number): Buffer | undefined {
    if (number < 1 || number > this.pageCount) return undefined;
    const overlaid = this.#offsets.get(number);
    const bytes = overlaid === undefined ? this.#fromDatabase(number) : this.#overlay.read(overlaid, this.pageSize);
    return bytes.length === this.pageSize ? bytes : undefined;
  }

  /** Pages are mostly asked for in order, so what follows a page is read with it. */
  #fromDatabase(number: number): Buffer {
    const index = number - 1 - this.#blockStart;
    if (index >= 0 && (index + 1) * this.pageSize <= this.#block.length)
      return this.#block.subarray(index * this.pageSize, (index + 1) * this.pageSize);
    if (number !== this.#nextBlock()) return this.#database.read((number - 1) * this.pageSize, this.pageSize);
    this.#blockStart = number - 1;
    this.#block = this.#database.read(this.#blockStart * this.pageSize, blockPageCount * this.pageSize);
    return this.#block.subarray(0, this.pageSize);
  }

  #nextBlock(): number {
    return this.#blockStart + Math.floor(this.#block.length / this.pageSize) + 1;
  }
}
