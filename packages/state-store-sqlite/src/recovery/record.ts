/** Rows as bytes (https://sqlite.org/fileformat2.html#record_format). Whatever the bytes are, nothing here throws. */
import { isUtf8 } from "node:buffer";

export type FoundValue = string | number | bigint | Buffer | null;

/** What kind of value a row holds in a column, told without reading the value. */
export type ValueKind = "null" | "integer" | "real" | "text" | "blob";

export interface Varint {
  readonly value: number;
  readonly end: number;
}

/** A number of one to nine bytes; absent where it runs off the bytes, or beyond what a number can hold. */
export function readVarint(bytes: Buffer, at: number): Varint | undefined {
  let value = 0;
  for (let index = 0; index < 8; index++) {
    const byte = bytes[at + index];
    if (byte === undefined) return undefined;
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return Number.isSafeInteger(value) ? { value, end: at + index + 1 } : undefined;
  }
  // Nine bytes are a negative number, or one beyond 2^56: no row of a store has either.
  return undefined;
}

const integerByteCounts = [0, 1, 2, 3, 4, 6, 8] as const;

function byteCountOf(serial: number): number | undefined {
  if (serial <= 6) return integerByteCounts[serial];
  if (serial === 7) return 8;
  if (serial <= 9) return 0;
  return serial <= 11 ? undefined : (serial - 12 - (serial % 2)) / 2;
}

export function kindOf(serial: number): ValueKind {
  if (serial === 0) return "null";
  if (serial === 7) return "real";
  if (serial <= 9) return "integer";
  return serial % 2 === 0 ? "blob" : "text";
}

export interface RecordHeader {
  readonly serials: readonly number[];
  /** Where the values begin. */
  readonly end: number;
}

/** The beginning of a record of `byteCount` bytes; absent unless header and values fill it exactly. */
export function readRecordHeader(bytes: Buffer, byteCount: number): RecordHeader | undefined {
  const length = readVarint(bytes, 0);
  if (!length || length.value > bytes.length || length.value < length.end) return undefined;
  const serials: number[] = [];
  let filled = length.value;
  let at = length.end;
  while (at < length.value) {
    const serial = readVarint(bytes, at);
    const valueByteCount = serial && byteCountOf(serial.value);
    if (!serial || valueByteCount === undefined) return undefined;
    serials.push(serial.value);
    filled += valueByteCount;
    at = serial.end;
  }
  return at === length.value && filled === byteCount && serials.length > 0 ? { serials, end: length.value } : undefined;
}

function integerAt(bytes: Buffer, at: number, byteCount: number): number | bigint {
  if (byteCount < 8) return bytes.readIntBE(at, byteCount);
  const value = bytes.readBigInt64BE(at);
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** The values of a whole record; absent where a text is none. */
export function readValues(bytes: Buffer, { serials, end }: RecordHeader): FoundValue[] | undefined {
  const values: FoundValue[] = [];
  let at = end;
  for (const serial of serials) {
    const byteCount = byteCountOf(serial) ?? 0;
    const kind = kindOf(serial);
    if (kind === "null") values.push(null);
    else if (kind === "real") values.push(bytes.readDoubleBE(at));
    else if (kind === "integer") values.push(serial >= 8 ? serial - 8 : integerAt(bytes, at, byteCount));
    else {
      const content = bytes.subarray(at, at + byteCount);
      if (kind === "text" && !isUtf8(content)) return undefined;
      values.push(kind === "text" ? content.toString("utf8") : content);
    }
    at += byteCount;
  }
  return values;
}
