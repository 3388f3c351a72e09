import { closeSync, openSync, readSync } from "node:fs";

/** A byte on which this process has a lock for as long as it has the file open. */
export interface LockedByte {
  readonly inode: bigint;
  readonly position: number;
}

/**
 * The kernel tells its table in pieces of a page, by position: what another process unlocks between two of them moves
 * the rest up, and a lock of ours is passed over. So one that is seen is held, and one that is not is looked for again.
 */
const looksMax = 32;

/** A line of the table: `3: POSIX  ADVISORY  READ 4711 08:01:131 128 131`. */
const lockLine = /POSIX .* (\d+) \S+ (\d+) (\d+|EOF)$/;

/** By inode alone: on btrfs and overlayfs the table names another device than stat does. */
function isTold(table: string, { inode, position }: LockedByte): boolean {
  const needle = `:${inode} `;
  // The table holds the locks of the whole machine; only lines that name the file are taken apart.
  for (let at = table.indexOf(needle); at !== -1; at = table.indexOf(needle, at + 1)) {
    const lineEnd = table.indexOf("\n", at);
    // The rest of a line that was cut here comes with the next piece.
    if (lineEnd === -1) return false;
    const line = table.slice(table.lastIndexOf("\n", at) + 1, lineEnd);
    const [, pid, start, end] = lockLine.exec(line) ?? [];
    if (Number(pid) !== process.pid || Number(start) > position) continue;
    if (end === "EOF" || Number(end) >= position) return true;
  }
  return false;
}

/**
 * Whether the kernel still knows the locks that SQLite believes it has. They are gone as soon as anything in this
 * process opens and closes one of the files; from then on another process may reset the log under us, and rows that
 * were acknowledged are lost though every check of the file passes.
 */
export class OwnLocks {
  readonly #descriptor: number;
  readonly #locked: readonly LockedByte[];
  readonly #bytes = Buffer.alloc(16 * 1024);

  private constructor(descriptor: number, locked: readonly LockedByte[]) {
    this.#descriptor = descriptor;
    this.#locked = locked;
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
    let missing = this.#locked;
    for (let look = 0; look < looksMax && missing.length > 0; look++) missing = this.#missing(missing);
    return missing.length === 0;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** Those of the bytes that the table does not tell of. It is read as far as the last of them. */
  #missing(wanted: readonly LockedByte[]): readonly LockedByte[] {
    let missing = wanted;
    let rest = "";
    for (let position = 0; missing.length > 0;) {
      const count = readSync(this.#descriptor, this.#bytes, 0, this.#bytes.length, position);
      if (count === 0) break;
      position += count;
      const lines = rest + this.#bytes.toString("latin1", 0, count);
      missing = missing.filter((byte) => !isTold(lines, byte));
      rest = lines.slice(lines.lastIndexOf("\n") + 1);
    }
    return missing;
  }
}
