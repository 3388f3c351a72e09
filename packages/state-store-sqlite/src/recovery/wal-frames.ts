/**
 * The committed pages of a write-ahead log (https://sqlite.org/fileformat2.html#walformat).
 *
 * SQLite itself stops at the first frame that does not verify. This reader goes on behind it, since each frame's
 * checksum continues that of the frame before, and so the stored one of a damaged frame vouches for the next. What
 * precedes a valid commit of the same salts was committed: SQLite overwrites what was not.
 */
import type { OfflineFile } from "./offline-file.ts";

const headerByteCount = 32;
const frameHeaderByteCount = 24;
/** The lowest bit of the magic tells the byte order of the checksums. */
const magic = 0x377f_0682;
const probedFrameCount = 64;

export interface WalFrames {
  readonly pageSize: number;
  /** Where in the file the newest committed content of a page is. */
  readonly offsets: ReadonlyMap<number, number>;
  /** The size of the database, in pages, after the last commit. */
  readonly committedPageCount: number;
  readonly usedFrameCount: number;
  /** Frames of this generation that do not verify; what they held is not used. */
  readonly damagedFrameCount: number;
}

interface Checksum {
  readonly first: number;
  readonly second: number;
}

interface WalFormat {
  readonly pageSize: number;
  readonly salts: Buffer;
  readonly isBigEndian: boolean;
}

function checksum(bytes: Buffer, seed: Checksum, isBigEndian: boolean): Checksum {
  let { first, second } = seed;
  for (let at = 0; at + 8 <= bytes.length; at += 8) {
    first = (first + (isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)) + second) >>> 0;
    second = (second + (isBigEndian ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4)) + first) >>> 0;
  }
  return { first, second };
}

function storedChecksum(bytes: Buffer, at: number): Checksum {
  return { first: bytes.readUInt32BE(at), second: bytes.readUInt32BE(at + 4) };
}

function isSame(left: Checksum, right: Checksum): boolean {
  return left.first === right.first && left.second === right.second;
}

function isPageSize(value: number): boolean {
  return value >= 512 && value <= 65_536 && (value & (value - 1)) === 0;
}

/** What the header says where it verifies; else everything it may have said. */
function formats(file: OfflineFile, header: Buffer, pageSizes: readonly number[]): WalFormat[] {
  const isBigEndian = (header.readUInt32BE(0) & 1) === 1;
  const pageSize = header.readUInt32BE(8);
  const salts = header.subarray(16, 24);
  const sum = checksum(header.subarray(0, 24), { first: 0, second: 0 }, isBigEndian);
  const isIntact = (header.readUInt32BE(0) & ~1) === magic && isPageSize(pageSize);
  if (isIntact && isSame(sum, storedChecksum(header, 24))) return [{ pageSize, salts, isBigEndian }];
  const saltsOfFirst = file.read(headerByteCount + 8, 8);
  const sizes = [...new Set([pageSize, ...pageSizes])].filter(isPageSize);
  return [salts, saltsOfFirst].flatMap((one) =>
    sizes.flatMap((size) => [false, true].map((big) => ({ pageSize: size, salts: one, isBigEndian: big }))),
  );
}

interface Frame {
  readonly page: number;
  /** Zero, or the size of the database after the commit that this frame ends. */
  readonly commit: number;
  readonly contentAt: number;
  readonly isValid: boolean;
}

/** Every frame of the generation, in order; frames of an older one, which lie behind it, are passed over. */
function* framesOf(file: OfflineFile, header: Buffer, format: WalFormat, countMax: number): Generator<Frame> {
  const { pageSize, salts, isBigEndian } = format;
  const frameByteCount = frameHeaderByteCount + pageSize;
  let seed = storedChecksum(header, 24);
  let count = 0;
  for (let at = headerByteCount; at + frameByteCount <= file.byteCount && count < countMax; at += frameByteCount) {
    count++;
    const frame = file.read(at, frameByteCount);
    if (frame.length < frameByteCount) return;
    const stored = storedChecksum(frame, 16);
    const isOurs = frame.subarray(8, 16).equals(salts);
    const sum = isOurs
      ? checksum(frame.subarray(frameHeaderByteCount), checksum(frame.subarray(0, 8), seed, isBigEndian), isBigEndian)
      : stored;
    yield {
      page: frame.readUInt32BE(0),
      commit: frame.readUInt32BE(4),
      contentAt: at + frameHeaderByteCount,
      isValid: isOurs && isSame(sum, stored),
    };
    seed = stored;
  }
}

function bestFormat(file: OfflineFile, header: Buffer, pageSizes: readonly number[]): WalFormat | undefined {
  const choices = formats(file, header, pageSizes).map((format) => ({
    format,
    validCount: [...framesOf(file, header, format, probedFrameCount)].filter(({ isValid }) => isValid).length,
  }));
  return choices.toSorted((left, right) => right.validCount - left.validCount)[0]?.format;
}

/** Reads a log; absent where there is none that could hold a frame. `pageSizes` is for a log that lost its header. */
export function readWal(file: OfflineFile, pageSizes: readonly number[]): WalFrames | undefined {
  const header = file.read(0, headerByteCount);
  if (header.length < headerByteCount) return undefined;
  const format = bestFormat(file, header, pageSizes);
  if (!format) return undefined;
  const offsets = new Map<number, number>();
  let pending: Frame[] = [];
  let invalidCount = 0;
  let usedFrameCount = 0;
  let damagedFrameCount = 0;
  let committedPageCount = 0;
  for (const frame of framesOf(file, header, format, Number.POSITIVE_INFINITY)) {
    if (!frame.isValid || frame.page === 0) {
      invalidCount++;
      continue;
    }
    pending.push(frame);
    if (frame.commit === 0) continue;
    for (const { page, contentAt } of pending) offsets.set(page, contentAt);
    usedFrameCount += pending.length;
    committedPageCount = frame.commit;
    // Behind the last commit lie old generations and what was never committed; before it, only damage.
    damagedFrameCount = invalidCount;
    pending = [];
  }
  return { pageSize: format.pageSize, offsets, committedPageCount, usedFrameCount, damagedFrameCount };
}
