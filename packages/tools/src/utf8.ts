/** Cutting UTF-8 bytes without breaking a character. */

// A character has at most three bytes behind its first.
const continuationBytesMax = 3;

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** How many bytes the character that begins with this byte has; 1 for a byte that begins none. */
function characterBytes(first: number): number {
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}

/** The largest end, at most `end`, at which these bytes can be cut. */
export function cutBefore(bytes: Uint8Array, end: number): number {
  let start = end - 1;
  while (start > 0 && end - start <= continuationBytesMax && isContinuation(bytes[start])) start -= 1;
  const first = bytes[start];
  return first !== undefined && start + characterBytes(first) > end ? start : end;
}

/** Where the first whole character begins in bytes that were cut anywhere. */
export function firstWhole(bytes: Uint8Array): number {
  let start = 0;
  while (start < continuationBytesMax && isContinuation(bytes[start])) start += 1;
  return start;
}

/** Decodes for a reader and a store: invalid bytes and NUL (which PostgreSQL text cannot hold) become U+FFFD. */
export function readableText(bytes: Buffer): string {
  return bytes.toString("utf8").replaceAll("\0", "\uFFFD");
}
