import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import type { Random } from "@turnkeeper/kernel";
import { codeOf } from "./store-failure.ts";

/**
 * Sixteen results of the 64 KiB that a tool may tell: one step with as many calls, or as many turns with one each. Not
 * more, since every store has one.
 */
const reserveBytes = 1024 * 1024;

/** What is given up beyond the bytes of a step: the blocks that its file, its folder and a torn line may take. */
const marginBytes = 16 * 1024;

/**
 * Room on the disk that is held back for the spool, as a file beside the database. It is cut shorter by what a step
 * needs, not given up as a whole: what is freed at once, whatever fills the disk would take.
 */
export class SpoolReserve {
  readonly path: string;
  readonly #random: Pick<Random, "id">;

  constructor(databasePath: string, random: Pick<Random, "id">) {
    this.path = `${databasePath}-reserve`;
    this.#random = random;
  }

  /** Lays it aside where it is missing or was cut shorter. Answers whether it is whole. */
  lay(): boolean {
    if ((statSync(this.path, { throwIfNoEntry: false })?.size ?? 0) >= reserveBytes) return true;
    const made = `${this.path}~${this.#random.id()}`;
    try {
      const descriptor = openSync(made, "wx", 0o600);
      try {
        // Written, not only sized: a file with a hole in it holds no room.
        if (writeSync(descriptor, Buffer.alloc(reserveBytes, "\n")) < reserveBytes) return false;
      } finally {
        closeSync(descriptor);
      }
      renameSync(made, this.path);
      return true;
    } catch {
      // A disk without room for it now: the spool then has what the disk has, and what was left of the reserve.
      return false;
    } finally {
      remove(made);
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
