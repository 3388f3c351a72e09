/**
 * Whether a store's files are still those that were opened, whole, and locked by this process.
 *
 * SQLite itself does not notice when its file is replaced, deleted or copied over: it goes on writing into a file that
 * nobody will open again, or lays its log over the pages of another one. So the files are looked at before every
 * write, and again before it is acknowledged; and inside the write lock, where nobody else can change them for good
 * reason, a write of turn data inspects the rest.
 */
import { lstatSync } from "node:fs";
import { FileAnchor } from "./file-anchor.ts";
import { headerIn, isOtherFile } from "./file-header.ts";
import type { FileHeader } from "./file-header.ts";
import { OwnLocks } from "./own-locks.ts";
import { rescue } from "./rescue.ts";
import type { Rescue } from "./rescue.ts";
import type { FileFinding } from "./store-failure.ts";

interface Node {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: bigint;
}

function nodeAt(path: string): Node | undefined {
  // The path is real, so a symbolic link there now is a replacement too. Not as doubles: inodes may pass 2^53.
  return lstatSync(path, { bigint: true, throwIfNoEntry: false });
}

/** Names the database file across paths: a second way to the same file has the same key. */
export function fileKey(path: string): string {
  const node = nodeAt(path);
  return node && node.ino !== 0n ? `${node.dev}:${node.ino}` : path;
}

/** Where SQLite's lock bytes lie: of the database the shared range, of the shared memory the dead-man switch. */
const sharedByte = 0x40000002;
const deadManByte = 128;

/** The header of the WAL index, https://sqlite.org/walformat.html#the_wal_index_header. */
const index = { length: 48, pageSize: 14, frameCount: 16 } as const;
const logHeaderBytes = 32;
const frameHeaderBytes = 24;

/** Whether a double tells this number from every other: what is too large for one is not rounded to it. */
function isExact(value: bigint): boolean {
  return value <= BigInt(Number.MAX_SAFE_INTEGER);
}

/** One file, followed by its path. */
class FollowedFile {
  readonly path: string;
  readonly inode: bigint;
  readonly #dev: number | bigint;
  readonly #ino: number | bigint;
  readonly #stat: { readonly bigint: boolean; readonly throwIfNoEntry: false };
  #size: number;

  constructor(path: string, { dev, ino, size }: Node) {
    this.path = path;
    this.inode = ino;
    // It is looked at in every transaction, and bigints make a look a fifth dearer.
    const isWide = !isExact(dev) || !isExact(ino);
    this.#dev = isWide ? dev : Number(dev);
    this.#ino = isWide ? ino : Number(ino);
    this.#stat = { bigint: isWide, throwIfNoEntry: false };
    this.#size = Number(size);
  }

  /** `deleted`, `replaced`, or shorter than it was when it was last looked at. */
  look(): FileFinding | undefined {
    const now = lstatSync(this.path, this.#stat);
    if (!now) return "deleted";
    if (now.dev !== this.#dev || now.ino !== this.#ino) return "replaced";
    const before = this.#size;
    this.#size = Number(now.size);
    return this.#size < before ? "truncated" : undefined;
  }

  get size(): number {
    return this.#size;
  }
}

/** What the index of the log says of it; absent when it was cut short. */
function indexOf(anchor: FileAnchor): { readonly pageSize: number; readonly frameCount: number } | undefined {
  const bytes = anchor.head();
  if (bytes.length < index.length) return undefined;
  // In the byte order of the machine, unlike everything else that SQLite stores. 65,536 is kept as 1.
  const [pageSize = 0] = new Uint16Array(bytes.buffer, bytes.byteOffset + index.pageSize, 1);
  const [frameCount = 0] = new Uint32Array(bytes.buffer, bytes.byteOffset + index.frameCount, 1);
  return { pageSize: pageSize === 1 ? 65_536 : pageSize, frameCount };
}

interface Log {
  readonly wal: FollowedFile;
  readonly shm: FollowedFile;
  readonly walAnchor: FileAnchor;
  readonly shmAnchor: FileAnchor;
  readonly locks: OwnLocks | undefined;
}

export class StoreGuard {
  readonly #database: FollowedFile;
  readonly #anchor: FileAnchor;
  readonly #log: Log | undefined;
  #header: FileHeader = { applicationId: 0, changeCounter: 0 };
  #hasRescued = false;
  #rescued: Rescue | undefined;

  private constructor(database: FollowedFile, anchor: FileAnchor, log: Log | undefined) {
    this.#database = database;
    this.#anchor = anchor;
    this.#log = log;
    this.lookAtHeader();
  }

  /**
   * Takes what is there now for the files that were opened, `anchor` for the database; absent when one of them is
   * missing, and the anchor is the caller's still then.
   */
  static on(path: string, hasLog: boolean, anchor: FileAnchor): StoreGuard | undefined {
    const follow = (file: string): FollowedFile | undefined => {
      const node = nodeAt(file);
      return node && new FollowedFile(file, node);
    };
    const database = follow(path);
    if (!database) return undefined;
    if (!hasLog) return new StoreGuard(database, anchor, undefined);
    const wal = follow(`${path}-wal`);
    const shm = follow(`${path}-shm`);
    if (!wal || !shm) return undefined;
    const walAnchor = new FileAnchor(wal.path, logHeaderBytes);
    const shmAnchor = new FileAnchor(shm.path, index.length);
    const locks = OwnLocks.of([
      { inode: database.inode, position: sharedByte },
      { inode: shm.inode, position: deadManByte },
    ]);
    return new StoreGuard(database, anchor, { wal, shm, walAnchor, shmAnchor, locks });
  }

  /** What the database was seen to begin with last. */
  get header(): FileHeader {
    return this.#header;
  }

  /** Whether the kernel tells of this process's locks, so that losing them is noticed. */
  get seesLocks(): boolean {
    return this.#log === undefined || this.#log.locks !== undefined;
  }

  /** Whether the path still leads to the very database and log. Throws what `lstat` throws, but for "no such file". */
  look(): FileFinding | undefined {
    const found = this.#database.look();
    // A copy of something else that is shorter says so in its header.
    if (found === "truncated") return this.lookAtHeader() ?? found;
    return found ?? this.#lookAtLog();
  }

  /** All of it. Only under the write lock: what others may do to the log meanwhile would be taken for damage. */
  inspect(): FileFinding | undefined {
    return this.look() ?? this.lookAtHeader() ?? (this.#log && this.#inspectLog(this.#log));
  }

  /** Whether the log that was opened still lies at its path, whatever became of the database. */
  isLogThere(): boolean {
    return this.#log !== undefined && this.#lookAtLog() === undefined;
  }

  /** How many pages the log holds, checkpointed or not; it begins anew when all of them are. */
  get logFrameCount(): number {
    return (this.#log && indexOf(this.#log.shmAnchor)?.frameCount) ?? 0;
  }

  /** Saves what has no name any more; see `rescue`. Once: what it answered it answers again. */
  rescue(): Rescue | undefined {
    if (this.#log === undefined || this.#hasRescued) return this.#rescued;
    this.#hasRescued = true;
    const files = {
      database: this.#anchor,
      wal: this.#log.walAnchor,
      isDatabaseThere: this.#database.look() === undefined,
    };
    return (this.#rescued = rescue(this.#database.path, files));
  }

  /** Only after every connection to the file is closed. */
  end(): void {
    this.#anchor.close();
    this.#log?.walAnchor.close();
    this.#log?.shmAnchor.close();
    this.#log?.locks?.close();
  }

  /** Another log at its path means that this one was deleted. Its length says nothing without its index. */
  #lookAtLog(): FileFinding | undefined {
    const found = this.#log?.wal.look();
    return found === "truncated" ? undefined : found && "deleted";
  }

  /** Whether it begins as it did: a file that was copied over this one keeps the inode; what its header counts, and whose it is, tells it apart. */
  lookAtHeader(): FileFinding | undefined {
    const now = headerIn(this.#anchor.head());
    if (typeof now === "string") return now;
    if (isOtherFile(this.#header, now)) return "replaced";
    this.#header = now;
    return undefined;
  }

  #inspectLog({ wal, shm, shmAnchor, locks }: Log): FileFinding | undefined {
    if (shm.look() !== undefined) return "deleted";
    const told = indexOf(shmAnchor);
    if (!told) return "truncated";
    const { pageSize, frameCount } = told;
    const frameBytes = frameHeaderBytes + pageSize;
    if (frameCount > 0 && wal.size < logHeaderBytes + frameCount * frameBytes) return "truncated";
    return locks === undefined || locks.areHeld() ? undefined : "unlocked";
  }
}
