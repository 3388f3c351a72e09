import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import type { Stats } from "node:fs";

const copyBytes = 1024 * 1024;

/**
 * A descriptor of one of a store's files, open as long as SQLite has it open. Reading through it disturbs nobody; to
 * close any descriptor of the file drops every lock that SQLite holds on it in this process, so it is closed last.
 */
export class FileAnchor {
  readonly #descriptor: number;
  readonly #bytes: Buffer;

  constructor(path: string, lengthMax: number) {
    this.#descriptor = openSync(path, "r");
    this.#bytes = Buffer.alloc(lengthMax);
  }

  /** The first bytes of the file, until the next call; fewer where the file is shorter. */
  head(): Buffer {
    return this.#bytes.subarray(0, readSync(this.#descriptor, this.#bytes, 0, this.#bytes.length, 0));
  }

  /** Of the file itself, whatever has become of its name. */
  stats(): Stats {
    return fstatSync(this.#descriptor);
  }

  /** Writes all of the file to a new one (0600), on the disk when it returns. Throws where something has that name. */
  copyTo(path: string): void {
    const copy = openSync(path, "wx", 0o600);
    try {
      const bytes = Buffer.alloc(copyBytes);
      let position = 0;
      for (;;) {
        const count = readSync(this.#descriptor, bytes, 0, bytes.length, position);
        if (count === 0) break;
        for (let at = 0; at < count;) at += writeSync(copy, bytes, at, count - at);
        position += count;
      }
      fsyncSync(copy);
    } finally {
      closeSync(copy);
    }
  }

  /** Only after every connection to the file is closed. */
  close(): void {
    closeSync(this.#descriptor);
  }
}
