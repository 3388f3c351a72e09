import { lstatSync } from "node:fs";

interface NodeIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

const lookOptions = { bigint: true, throwIfNoEntry: false } as const;

function nodeAt(path: string): NodeIdentity | undefined {
  // The path is real, so a symbolic link there now is a replacement too. Not as doubles: inodes may pass 2^53.
  const stats = lstatSync(path, lookOptions);
  return stats && { dev: stats.dev, ino: stats.ino };
}

function isSame(left: NodeIdentity, right: NodeIdentity | undefined): boolean {
  return right !== undefined && left.dev === right.dev && left.ino === right.ino;
}

/**
 * Which files a store was opened on, told by device and inode. `lstat` alone is used: opening and closing a store's
 * file through `fs` would cancel the locks that SQLite holds on it in this process.
 */
export class FileIdentity {
  readonly #path: string;
  readonly #walPath: string;
  readonly #database: NodeIdentity;
  readonly #wal: NodeIdentity | undefined;

  private constructor(path: string, database: NodeIdentity, wal: NodeIdentity | undefined) {
    this.#path = path;
    this.#walPath = `${path}-wal`;
    this.#database = database;
    this.#wal = wal;
  }

  /** Records what is there now; absent when there is no database file, or no WAL where one is expected. */
  static of(path: string, hasWal: boolean): FileIdentity | undefined {
    const database = nodeAt(path);
    const wal = hasWal ? nodeAt(`${path}-wal`) : undefined;
    if (!database || (hasWal && !wal)) return undefined;
    return new FileIdentity(path, database, wal);
  }

  /** Names the database file across paths: a second way to the same file has the same key. */
  static keyOf(path: string): string {
    const node = nodeAt(path);
    return node && node.ino !== 0n ? `${node.dev}:${node.ino}` : path;
  }

  /** Whether the path still leads to the very files. Throws what `lstat` throws, but for "no such file". */
  isIntact(): boolean {
    if (!isSame(this.#database, nodeAt(this.#path))) return false;
    return this.#wal === undefined || this.isWalThere();
  }

  /** Whether the WAL that was opened still lies at its path, whatever became of the database file. */
  isWalThere(): boolean {
    return this.#wal !== undefined && isSame(this.#wal, nodeAt(this.#walPath));
  }
}
