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
 * Leaves to spool-replay what a line means and when it may go, to the reserve that a full disk has room for it.
 */
import {
  closeSync,
  constants,
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
import type { Stats } from "node:fs";
import { dirname, join } from "node:path";
import type { Random } from "@turnkeeper/kernel";
import { syncFolder } from "./folder-sync.ts";
import { linesIn } from "./spool-line.ts";
import { SpoolReserve } from "./spool-reserve.ts";
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

/** Each time something came in between, mostly a replay that took the file: nobody meets as many of them. */
const overtakenMax = 64;

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

function isFull(error: unknown): boolean {
  return /^(ENOSPC|EDQUOT)$/.test(codeOf(error));
}

export class SpoolFolder {
  readonly databasePath: string;
  readonly path: string;
  /** What a full disk has room in. */
  readonly reserve: SpoolReserve;
  readonly #random: Pick<Random, "id">;

  constructor(databasePath: string, random: Pick<Random, "id">) {
    this.databasePath = databasePath;
    this.path = `${databasePath}-spool`;
    this.reserve = new SpoolReserve(databasePath);
    this.#random = random;
  }

  /** Whether there is a spool at all: one look, for every grant. */
  get exists(): boolean {
    return lstatSync(this.path, { throwIfNoEntry: false }) !== undefined;
  }

  /** Appends a line to the session's file, and answers its path once the line would survive a power cut. */
  keep(sessionId: string, line: string): string {
    if (!sessionIdPattern.test(sessionId))
      throw storeError("STORE_CONTRACT", `Session id ${JSON.stringify(sessionId)} cannot name a file of the spool.`);
    const path = join(this.path, `${sessionId}.jsonl`);
    for (let overtakenCount = 0; overtakenCount < overtakenMax;) {
      try {
        if (this.#append(path, line)) return path;
        overtakenCount++;
      } catch (error) {
        if (!isFull(error) || !this.reserve.giveUp(Buffer.byteLength(line))) throw error;
      }
    }
    const why = `in ${overtakenMax} attempts no line was whole in the file of that name. Find what moves it, and repeat.`;
    throw this.#unfit(path, why);
  }

  /** Answers whether the line is where a replay will find it; else it is to be written again. */
  #append(path: string, line: string): boolean {
    this.#make();
    this.#bearerOf(path);
    return (
      unlessMissing(() =>
        withFile(path, appending, (fd) => {
          const { size, nlink, uid, dev, ino } = fstatSync(fd);
          if (nlink > 1 || !isOurs(uid)) throw this.#foreign(path);
          const bytes = Buffer.from(`${this.#isCutShort(fd, size) ? "\n" : ""}${line}\n`);
          if (writeSync(fd, bytes) < bytes.length) {
            // Throws what stood in the way; where that has passed, the line is written anew, as a whole.
            writeSync(fd, "\n");
            return false;
          }
          fdatasyncSync(fd);
          // Always: whoever made the file or the folder may not have come to it yet.
          for (const made of [this.path, dirname(this.path)]) syncFolder(made);
          const there = this.#bearerOf(path);
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
      if (this.#isForeign()) throw this.#foreign(this.path, "folder");
    }
  }

  /** Whether something else bears the folder's name: nothing of it is ours to read, and nothing is written there. */
  #isForeign(): boolean {
    const stats = lstatSync(this.path, { throwIfNoEntry: false });
    return stats !== undefined && !(stats.isDirectory() && isOurs(stats.uid));
  }

  #foreign(path: string, wanted: "file" | "folder" = "file"): Error {
    return this.#unfit(path, `it is a link or no ${wanted}, or belongs to another user. Move it away and repeat.`);
  }

  #unfit(path: string, why: string): Error {
    return storeError("STORE_UNAVAILABLE", `Could not use the spool ${path}: ${why}`, { path: this.databasePath });
  }

  /** What bears the name, if anything does: a link is never followed, nor is a pipe waited for. */
  #bearerOf(path: string): Stats | undefined {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats && !stats.isFile()) throw this.#foreign(path);
    return stats;
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
    if (this.#isForeign()) throw this.#foreign(this.path, "folder");
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
    this.#bearerOf(path);
    // It may have been replayed and removed since it was listed.
    const text = unlessMissing(() => withFile(path, reading, (fd) => readFileSync(fd, "utf8")));
    return text === undefined ? [] : [{ sessionId, path, lines: linesIn(text) }];
  }

  /** Every file that waits, in the order of session ids. */
  files(): readonly SpoolFile[] {
    if (this.#isForeign()) throw this.#foreign(this.path, "folder");
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
    // What something else has there was never of a session.
    if (!this.exists || this.#isForeign()) return;
    for (const file of this.claim(sessionId)) this.letGo(file, []);
    this.#tidy();
  }

  #tidy(): void {
    try {
      rmdirSync(this.path);
      // What waited is back, so there may be room again for what comes next.
      this.reserve.lay();
    } catch (error) {
      if (!/^(ENOTEMPTY|EEXIST|ENOENT)$/.test(codeOf(error))) throw error;
    }
  }
}
