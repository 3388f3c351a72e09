/**
 * The files of a store's spool: one folder beside the database, in it one file a session, one line a step. It opens
 * these files alone and never the store's, so it works whatever the store's health, and cancels none of its locks.
 *
 * Keeps SPOOL-1 on the disk. A writer only appends; whoever replays first renames the file, and so has it for itself:
 *
 * | the writer's line was there | the writer then looks at the name | so the step is |
 * | --- | --- | --- |
 * | before the rename | its file still bears it, or no more | read by the replay; perhaps kept twice, which is harmless |
 * | after the rename | its file bears it no more | written again, to a new file of the name |
 *
 * A disk that is full has room for the spool all the same: a reserve was laid aside when the store was opened, and is
 * given up for the first step that does not fit. Leaves to spool-replay what a line means, and when it may go.
 */
import {
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Random } from "@turnkeeper/kernel";
import { syncFolder } from "./folder-sync.ts";
import { linesIn } from "./spool-line.ts";
import { codeOf, storeError } from "./store-failure.ts";

/** A file of the spool, read. */
export interface SpoolFile {
  readonly sessionId: string;
  readonly path: string;
  readonly lines: readonly string[];
}

const folderMode = 0o700;
const fileMode = 0o600;
/** Missing where the platform has no such flag. */
const noFollow = (constants as { readonly O_NOFOLLOW?: number }).O_NOFOLLOW ?? 0;
const appending = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | noFollow;
const reading = constants.O_RDONLY | noFollow;

/** A few steps of any turn: a tool tells at most 64 KiB or so, a model less. Small, since every store has one. */
const reserveBytes = 256 * 1024;

/** The name of a file that a replay has for itself; a tilde stands in no session id. */
const claimedPattern = /^([^~]+)~(\d+)~[^~]+\.jsonl$/;
const livePattern = /^([^~]+)\.jsonl$/;
/** What names a session's file as it is; the length leaves room for what a claim adds. */
const sessionIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

const newline = "\n".codePointAt(0);

function withFile<T>(path: string, flags: number, use: (fd: number) => T): T {
  const fd = openSync(path, flags, fileMode);
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

/** The same on a missing file: nothing. */
function unlessMissing<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function isOurs(uid: number): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

function foreign(path: string): Error {
  return storeError(
    "STORE_UNAVAILABLE",
    `Could not use the spool ${path}: it is a link, or belongs to another user. Move it away and repeat.`,
    { path },
  );
}

function isFull(error: unknown): boolean {
  return /^(ENOSPC|EDQUOT)$/.test(codeOf(error));
}

export class SpoolFolder {
  readonly path: string;
  readonly #reserve: string;
  readonly #random: Pick<Random, "id">;

  constructor(databasePath: string, random: Pick<Random, "id">) {
    this.path = `${databasePath}-spool`;
    this.#reserve = `${databasePath}-reserve`;
    this.#random = random;
  }

  /** Whether there is a spool at all: one look, for every grant. */
  get exists(): boolean {
    return lstatSync(this.path, { throwIfNoEntry: false }) !== undefined;
  }

  /** Lays the reserve aside, where it is missing. Answers whether it is there. */
  layReserve(): boolean {
    if (existsSync(this.#reserve)) return true;
    try {
      const made = `${this.#reserve}~${this.#random.id()}`;
      try {
        // Written, not only sized: a file with a hole in it holds no room.
        withFile(made, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, (fd) => {
          if (writeSync(fd, Buffer.alloc(reserveBytes, "\n")) < reserveBytes) throw fullError();
        });
        renameSync(made, this.#reserve);
        return true;
      } catch (error) {
        unlessMissing(() => unlinkSync(made));
        throw error;
      }
    } catch {
      // A disk without room for it now: the spool then has what the disk has.
      return false;
    }
  }

  /** Appends a line to the session's file, and answers its path once the line would survive a power cut. */
  keep(sessionId: string, line: string): string {
    if (!sessionIdPattern.test(sessionId))
      throw storeError("STORE_CONTRACT", `Session id ${JSON.stringify(sessionId)} cannot name a file of the spool.`);
    const path = join(this.path, `${sessionId}.jsonl`);
    for (;;) {
      try {
        if (this.#append(path, line)) return path;
      } catch (error) {
        if (!isFull(error) || unlessMissing(() => (unlinkSync(this.#reserve), true)) === undefined) throw error;
      }
    }
  }

  /** Answers whether the line is where a replay will find it; else it is to be written again. */
  #append(path: string, line: string): boolean {
    this.#make();
    return (
      unlessMissing(() =>
        withFile(path, appending, (fd) => {
          const { size, nlink, uid, dev, ino } = fstatSync(fd);
          if (nlink > 1 || !isOurs(uid)) throw foreign(path);
          const bytes = Buffer.from(`${this.#isCutShort(fd, size) ? "\n" : ""}${line}\n`);
          if (writeSync(fd, bytes) < bytes.length) throw fullError();
          fdatasyncSync(fd);
          if (size === 0) for (const folder of [this.path, dirname(this.path)]) syncFolder(folder);
          const there = lstatSync(path, { throwIfNoEntry: false });
          return there?.ino === ino && there.dev === dev;
        }),
      ) ?? false
    );
  }

  #make(): void {
    try {
      mkdirSync(this.path, { mode: folderMode });
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      const stats = lstatSync(this.path, { throwIfNoEntry: false });
      if (stats && !(stats.isDirectory() && isOurs(stats.uid))) throw foreign(this.path);
    }
  }

  #isCutShort(fd: number, size: number): boolean {
    if (size === 0) return false;
    const last = Buffer.alloc(1);
    readSync(fd, last, 0, 1, size - 1);
    return last[0] !== newline;
  }

  /**
   * Takes what waits of a session away from its writers and answers it, oldest first; what an earlier claim left is in
   * it again. To be called under the store's write lock.
   */
  claim(sessionId: string): readonly SpoolFile[] {
    const live = join(this.path, `${sessionId}.jsonl`);
    const number = 1 + Math.max(0, ...this.#claimed(sessionId).map((claimed) => claimed.number));
    // With an id, so that no name comes twice: somebody may still be about to remove an earlier file.
    unlessMissing(() => renameSync(live, join(this.path, `${sessionId}~${number}~${this.#random.id()}.jsonl`)));
    return this.#claimed(sessionId).flatMap(({ name }) => this.#read(sessionId, name));
  }

  #claimed(sessionId: string): { readonly name: string; readonly number: number }[] {
    return this.#names()
      .flatMap((name) => {
        const [, id, number] = claimedPattern.exec(name) ?? [];
        return id === sessionId ? [{ name, number: Number(number) }] : [];
      })
      .toSorted((left, right) => left.number - right.number);
  }

  #names(): readonly string[] {
    return unlessMissing(() => readdirSync(this.path)) ?? [];
  }

  #read(sessionId: string, name: string): readonly SpoolFile[] {
    const path = join(this.path, name);
    // It may have been replayed and removed since it was listed.
    const text = unlessMissing(() => withFile(path, reading, (fd) => readFileSync(fd, "utf8")));
    return text === undefined ? [] : [{ sessionId, path, lines: linesIn(text) }];
  }

  /** Every file that waits, in the order of session ids. */
  files(): readonly SpoolFile[] {
    return this.#names()
      .toSorted()
      .flatMap((name) => {
        const [, sessionId] = claimedPattern.exec(name) ?? livePattern.exec(name) ?? [];
        return sessionId === undefined ? [] : this.#read(sessionId, name);
      });
  }

  /** Lets go of a claimed file's lines but those that must stay, and of the folder when it is empty. */
  letGo(file: SpoolFile, staying: readonly string[]): void {
    if (staying.length === file.lines.length) return;
    if (staying.length > 0) {
      const made = `${file.path}~${this.#random.id()}`;
      withFile(made, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, (fd) => {
        writeSync(fd, `${staying.join("\n")}\n`);
        fdatasyncSync(fd);
      });
      renameSync(made, file.path);
      return;
    }
    unlessMissing(() => unlinkSync(file.path));
    this.#tidy();
  }

  /** Removes what waits of a session. */
  forget(sessionId: string): void {
    if (!this.exists) return;
    for (const file of this.claim(sessionId)) this.letGo(file, []);
    this.#tidy();
  }

  #tidy(): void {
    try {
      rmdirSync(this.path);
    } catch (error) {
      if (!/^(ENOTEMPTY|EEXIST|ENOENT)$/.test(codeOf(error))) throw error;
    }
  }
}

function fullError(): Error {
  return Object.assign(new Error("The disk took only a part of it."), { code: "ENOSPC" });
}
