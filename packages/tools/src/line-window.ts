/** A run of whole lines out of a file of any size, in constant memory. */

import { cutBefore } from "./utf8.ts";

export interface LineWindow {
  readonly bytes: Buffer;
  /** Lines in `bytes`, the last one counted too if it has no end or was cut. */
  readonly lineCount: number;
  /** Whether the file goes on behind the window. */
  readonly more: boolean;
  /** Whether the window is the beginning of one line that did not fit. */
  readonly cutLine: boolean;
}

/** Reads the next bytes into the buffer and answers how many came; 0 at the end. */
export type ReadBytes = (into: Buffer) => Promise<number>;

const newline = 0x0a;

/** Cuts bytes that begin at a line and run on to at most one byte past `bytesMax`. */
export function cutWindow(
  bytes: Buffer,
  { linesMax, bytesMax }: { readonly linesMax: number; readonly bytesMax: number },
): LineWindow {
  let end = 0;
  let lineCount = 0;
  while (lineCount < linesMax && end < bytes.length) {
    const found = bytes.indexOf(newline, end);
    const lineEnd = found === -1 ? bytes.length : found + 1;
    if (lineEnd > bytesMax) break;
    end = lineEnd;
    lineCount += 1;
  }
  if (lineCount > 0 || bytes.length === 0) {
    return { bytes: bytes.subarray(0, end), lineCount, more: end < bytes.length, cutLine: false };
  }
  return { bytes: bytes.subarray(0, cutBefore(bytes, bytesMax)), lineCount: 1, more: true, cutLine: true };
}

/**
 * Passes over `count` lines. Answers how many there were, and the bytes behind them that were already read.
 * A last line without an end counts as a line.
 */
export async function skipLines(
  read: ReadBytes,
  buffered: Buffer,
  count: number,
): Promise<{ readonly skippedCount: number; readonly rest: Buffer }> {
  const chunk = Buffer.alloc(65_536);
  let rest = buffered;
  let skippedCount = 0;
  let insideLine = false;
  for (;;) {
    while (skippedCount < count && rest.length > 0) {
      const found = rest.indexOf(newline);
      insideLine = found === -1;
      if (found === -1) break;
      skippedCount += 1;
      rest = rest.subarray(found + 1);
    }
    if (skippedCount === count) return { skippedCount, rest };
    const readCount = await read(chunk);
    if (readCount === 0) return { skippedCount: skippedCount + (insideLine ? 1 : 0), rest: Buffer.alloc(0) };
    rest = chunk.subarray(0, readCount);
  }
}

/** Reads on until there are `bytesMax` bytes or the file ends. */
export async function fill(read: ReadBytes, buffered: Buffer, bytesMax: number): Promise<Buffer> {
  const bytes = Buffer.alloc(bytesMax);
  let count = buffered.copy(bytes);
  while (count < bytesMax) {
    const readCount = await read(bytes.subarray(count));
    if (readCount === 0) break;
    count += readCount;
  }
  return bytes.subarray(0, count);
}
