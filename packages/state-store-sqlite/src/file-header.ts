/** The first bytes of a database, https://sqlite.org/fileformat.html#the_database_header. */

/** How many of them say anything here. */
export const headerBytes = 100;

/** What every database begins with. */
const magic = Buffer.from("SQLite format 3\0");
const at = { changeCounter: 24, applicationId: 68 } as const;

export interface FileHeader {
  /** Whose file it is; 0 until the first checkpoint. */
  readonly applicationId: number;
  /** Only grows, whenever page 1 is written. */
  readonly changeCounter: number;
}

/** `truncated` when it was cut short, `damaged` when it is no database's. */
export function headerIn(bytes: Buffer): FileHeader | "truncated" | "damaged" {
  if (bytes.length < headerBytes) return "truncated";
  if (!bytes.subarray(0, magic.length).equals(magic)) return "damaged";
  return { applicationId: bytes.readUInt32BE(at.applicationId), changeCounter: bytes.readUInt32BE(at.changeCounter) };
}

/** Whether a file that began as `before` is another one now, or an older copy of itself. */
export function isOtherFile(before: FileHeader, now: FileHeader): boolean {
  const isOthers = before.applicationId !== 0 && now.applicationId !== before.applicationId;
  return isOthers || now.changeCounter < before.changeCounter;
}
