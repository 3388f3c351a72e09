import { closeSync, openSync, readSync } from "node:fs";

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

  /** Only after every connection to the file is closed. */
  close(): void {
    closeSync(this.#descriptor);
  }
}
