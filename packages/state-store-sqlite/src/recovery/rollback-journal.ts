/**
 * The pages that a rollback journal left by a crash would put back (https://sqlite.org/fileformat2.html#rollbackjournal).
 * Without it the database file is a mixture of before and after.
 */
import type { OfflineFile } from "./offline-file.ts";

const magic = Buffer.from("d9d505f920a163d7", "hex");
const headerByteCount = 28;
const untilTheEnd = 0xffff_ffff;

export interface JournalPages {
  readonly pageSize: number;
  /** Where in the journal a page's content before the transaction is. */
  readonly offsets: ReadonlyMap<number, number>;
  readonly pageCount: number;
}

function isWhole(content: Buffer, nonce: number, stored: number): boolean {
  let sum = nonce;
  for (let at = content.length - 200; at > 0; at -= 200) sum = (sum + (content[at] ?? 0)) >>> 0;
  return sum === stored;
}

/** Absent where there is no journal, or one that was ended. */
export function readJournal(file: OfflineFile): JournalPages | undefined {
  const first = file.read(0, headerByteCount);
  if (first.length < headerByteCount || !first.subarray(0, 8).equals(magic)) return undefined;
  const pageCount = first.readUInt32BE(16);
  const sectorSize = first.readUInt32BE(20);
  const pageSize = first.readUInt32BE(24);
  const isSane = (size: number, least: number): boolean => size >= least && size <= 65_536 && (size & (size - 1)) === 0;
  if (!isSane(pageSize, 512) || !isSane(sectorSize, 32)) return undefined;
  const offsets = new Map<number, number>();
  const recordByteCount = pageSize + 8;
  for (let at = 0; at + headerByteCount <= file.byteCount; at = Math.ceil(at / sectorSize) * sectorSize) {
    const header = file.read(at, headerByteCount);
    if (!header.subarray(0, 8).equals(magic)) break;
    const nonce = header.readUInt32BE(12);
    const told = header.readUInt32BE(8);
    at += sectorSize;
    const fitting = Math.max(0, Math.floor((file.byteCount - at) / recordByteCount));
    let left = told === untilTheEnd ? fitting : Math.min(told, fitting);
    for (; left > 0; left--, at += recordByteCount) {
      const record = file.read(at, recordByteCount);
      const content = record.subarray(4, 4 + pageSize);
      if (record.length < recordByteCount || !isWhole(content, nonce, record.readUInt32BE(4 + pageSize)))
        return { pageSize, offsets, pageCount };
      const page = record.readUInt32BE(0);
      if (!offsets.has(page)) offsets.set(page, at + 4);
    }
  }
  return { pageSize, offsets, pageCount };
}
