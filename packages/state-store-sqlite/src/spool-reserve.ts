import { closeSync, constants, fstatSync, ftruncateSync, openSync, statSync, unlinkSync, writeSync } from "node:fs";
import { codeOf } from "./store-failure.ts";

/**
 * Sixteen results of the 64 KiB that a tool may tell: one step with as many calls, or as many turns with one each. Not
 * more, since every store has one.
 */
const reserveBytes = 1024 * 1024;

/** What is given up beyond the bytes of a step: the blocks that its file, its folder and a torn line may take. */
const marginBytes = 16 * 1024;

/** Missing where the platform has no such flag. */
const noFollow = (constants as { readonly O_NOFOLLOW?: number }).O_NOFOLLOW ?? 0;

/**
 * Room on the disk that is held back for the spool, as a file beside the database. It is cut shorter by what a step
 * needs, not given up as a whole: what is freed at once, whatever fills the disk would take.
 */
export class SpoolReserve {
  readonly path: string;

  constructor(databasePath: string) {
    this.path = `${databasePath}-reserve`;
  }

  /** How long it is now. */
  get size(): number {
    return statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Makes it so long where it is missing or was cut shorter, or leaves it as it is. Answers whether it is that long. */
  lay(byteCount: number = reserveBytes): boolean {
    if (this.size >= byteCount) return true;
    let descriptor: number | undefined;
    try {
      descriptor = openSync(this.path, constants.O_WRONLY | constants.O_CREAT | noFollow, 0o600);
      const { size } = fstatSync(descriptor);
      const missing = Math.max(0, byteCount - size);
      // Written, not only sized: a file with a hole in it holds no room. Two who do it at once write the same.
      if (writeSync(descriptor, Buffer.alloc(missing, "\n"), 0, missing, size) === missing) return true;
      // Of a disk that is nearly full not the last of what there is.
      ftruncateSync(descriptor, size);
      return false;
    } catch {
      // A disk without room for it now: the spool then has what the disk has, and what was left of the reserve.
      return false;
    } finally {
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }

  /** Frees room for so many bytes, or all that there is. Answers whether there was any. */
  giveUp(byteCount: number): boolean {
    let descriptor: number | undefined;
    try {
      descriptor = openSync(this.path, constants.O_WRONLY);
      const left = fstatSync(descriptor).size - byteCount - marginBytes;
      if (left <= 0) return remove(this.path);
      ftruncateSync(descriptor, left);
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return false;
      // Where even cutting it short takes room, as on a file system that copies what it writes.
      return remove(this.path);
    } finally {
      if (descriptor !== undefined) closeSync(descriptor);
    }
  }
}

/** Answers whether it was there. */
function remove(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
