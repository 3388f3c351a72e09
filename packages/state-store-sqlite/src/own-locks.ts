import { closeSync, openSync, readSync } from "node:fs";

/** A byte on which this process has a lock for as long as it has the file open. */
export interface LockedByte {
  readonly inode: bigint;
  readonly position: number;
}

/**
 * Whether the kernel still knows the locks that SQLite believes it has. They are gone as soon as anything in this
 * process opens and closes one of the files; from then on another process may reset the log under us, and rows that
 * were acknowledged are lost though every check of the file passes.
 */
export class OwnLocks {
  readonly #descriptor: number;
  readonly #patterns: readonly (readonly [RegExp, number])[];
  #bytes = Buffer.alloc(16 * 1024);

  private constructor(descriptor: number, bytes: readonly LockedByte[]) {
    this.#descriptor = descriptor;
    // By inode alone: on btrfs and overlayfs the table names another device than stat does.
    this.#patterns = bytes.map(({ inode, position }) => [
      new RegExp(`^\\d+: POSIX .* ${process.pid} [0-9a-f]+:[0-9a-f]+:${inode} (\\d+) (\\d+|EOF)$`, "gm"),
      position,
    ]);
  }

  /** Absent where the kernel does not tell of them: no Linux, or a container that hides the table. */
  static of(bytes: readonly LockedByte[]): OwnLocks | undefined {
    let descriptor: number;
    try {
      descriptor = openSync("/proc/locks", "r");
    } catch {
      return undefined;
    }
    const locks = new OwnLocks(descriptor, bytes);
    if (locks.areHeld()) return locks;
    locks.close();
    return undefined;
  }

  areHeld(): boolean {
    const table = this.#read();
    return this.#patterns.every(([pattern, position]) => {
      for (const [, start, end] of table.matchAll(pattern))
        if (Number(start) <= position && (end === "EOF" || position <= Number(end))) return true;
      return false;
    });
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #read(): string {
    let length = 0;
    for (;;) {
      const count = readSync(this.#descriptor, this.#bytes, length, this.#bytes.length - length, length);
      length += count;
      if (count === 0) return this.#bytes.toString("latin1", 0, length);
      if (length === this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(length)]);
    }
  }
}
