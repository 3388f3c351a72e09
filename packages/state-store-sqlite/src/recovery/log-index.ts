/**
 * What the index of a log says of it (https://sqlite.org/walformat.html#the_wal_index_header). A log that was cut short
 * looks whole, since a reader takes it to end where its frames do: only the index, which processes shared, knows better.
 */
import type { OfflineFile } from "./offline-file.ts";
import type { SourceFiles } from "./page-image.ts";

const headerByteCount = 48;
const position = { isInit: 12, frameCount: 16, salts: 32, backfilledCount: 96 } as const;
const logHeaderByteCount = 32;
const frameHeaderByteCount = 24;

/** A number in the byte order of the machine, unlike all that SQLite keeps for later. */
function numberAt(bytes: Buffer, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length).getUint32(at, isLittleEndian);
}

const isLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Whether the index is of this log; an empty one may be the remainder of any. */
function isOf(wal: OfflineFile, index: Buffer): boolean {
  if (wal.byteCount === 0) return true;
  return wal.read(16, 8).equals(index.subarray(position.salts, position.salts + 8));
}

/** How many committed frames the log is short of, that are not in the database either; 0 where nothing tells of any. */
export function missingFrameCount({ shm, wal }: SourceFiles, pageSize: number): number {
  const index = shm.read(0, position.backfilledCount + 4);
  if (index.length < position.backfilledCount + 4 || index[position.isInit] !== 1) return 0;
  // Two copies: they differ where a process died while it wrote them.
  if (!index.subarray(0, headerByteCount).equals(index.subarray(headerByteCount, 2 * headerByteCount))) return 0;
  if (!isOf(wal, index)) return 0;
  const frameCount = Math.max(0, Math.floor((wal.byteCount - logHeaderByteCount) / (frameHeaderByteCount + pageSize)));
  const there = Math.max(frameCount, numberAt(index, position.backfilledCount));
  return Math.max(0, numberAt(index, position.frameCount) - there);
}
