/**
 * Files that are read as bytes. Closing one drops every lock that its process holds on it, so this module is loaded in
 * the recovery process alone, which never opens the source with SQLite.
 */
import { closeSync, fstatSync, fsyncSync, openSync, readSync, statSync } from "node:fs";

/** What changes with every write: two that are equal mean that nobody wrote in between. */
function fingerprintOf(path: string | undefined): string {
  if (path === undefined) return "missing";
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats ? `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}` : "missing";
}

/** The bytes of one file, read only. A file that is not there reads as an empty one, and so does none. */
export class OfflineFile {
  readonly path: string | undefined;
  readonly byteCount: number;
  readonly #descriptor: number | undefined;
  readonly #fingerprint: string;

  constructor(path: string | undefined) {
    this.path = path;
    this.#fingerprint = fingerprintOf(path);
    this.#descriptor = path === undefined || this.#fingerprint === "missing" ? undefined : openSync(path, "r");
    this.byteCount = this.#descriptor === undefined ? 0 : fstatSync(this.#descriptor).size;
  }

  /** What there is from `offset`, at most `byteCount` bytes of it. */
  read(offset: number, byteCount: number): Buffer {
    const wanted = Math.max(0, Math.min(byteCount, this.byteCount - offset));
    const bytes = Buffer.allocUnsafe(wanted);
    let filled = 0;
    while (this.#descriptor !== undefined && filled < wanted) {
      const count = readSync(this.#descriptor, bytes, filled, wanted - filled, offset + filled);
      if (count === 0) break;
      filled += count;
    }
    return bytes.subarray(0, filled);
  }

  /** Whether the file is still what it was when it was opened. */
  isUnchanged(): boolean {
    return fingerprintOf(this.path) === this.#fingerprint;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }
}

/** Waits until a finished file that nobody has open, or a folder, is on the disk. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
