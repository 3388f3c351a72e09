/** Puts a whole file in place: a reader sees the old content or the new, never a part; a failure leaves the old. */

import { lstatSync, renameSync } from "node:fs";
import type { Stats } from "node:fs";
import { access, constants, mkdir, open, realpath, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import path from "node:path";
import type { CodedError } from "@turnkeeper/kernel";
import { throwIfInterrupted, toolError } from "./errors.ts";
import { quoted } from "./file-error.ts";
import { isSameVersion } from "./seen-files.ts";
import { kindOf } from "./workspace-path.ts";
import type { WorkspacePath } from "./workspace-path.ts";

/** Rejects with `FILE_UNUSABLE` for what is no regular file, and with the system's error for one that is read-only. */
export async function checkReplaceable({ shown, real, stats }: WorkspacePath, attempt: string): Promise<void> {
  if (stats === undefined) return;
  if (!stats.isFile()) {
    throw toolError("FILE_UNUSABLE", `Could not ${attempt} ${quoted(shown)}: it is a ${kindOf(stats)}.`);
  }
  // Renaming over a file needs no right to write it: one that was made read-only would be lost.
  await access(real, constants.W_OK);
}

export interface Replacement {
  readonly content: Buffer;
  /** A name that nobody else has, for the file beside the target. */
  readonly temporaryName: string;
  readonly signal: AbortSignal;
  /** The file as the new content was made from it: one that has changed since is left alone (`FILE_CHANGED`). */
  readonly basis?: Stats;
}

/** Writes beside the target and renames over it; answers the stats of the new file. */
export async function replaceFile(target: WorkspacePath, replacement: Replacement): Promise<Stats> {
  const { content, temporaryName, signal, basis } = replacement;
  const folder = path.dirname(target.real);
  await mkdir(folder, { recursive: true });
  // Somebody may have put a link where a folder was missing.
  if ((await realpath(folder)) !== folder) {
    throw toolError("PATH_REFUSED", `The path ${quoted(target.shown)} changed while it was being written.`);
  }
  const temporary = path.join(folder, temporaryName);
  const handle = await open(temporary, "wx");
  try {
    let written: Stats;
    try {
      await handle.writeFile(content);
      if (target.stats) await takeOver(handle, target.stats);
      // Else a power cut after the rename could leave an empty file under the name.
      await handle.sync();
      written = await handle.stat();
    } finally {
      await handle.close();
    }
    throwIfInterrupted(signal, "put the file in place");
    putInPlace(temporary, target, basis);
    return written;
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** The last look and the rename are one step: nothing of this process comes between them. */
function putInPlace(temporary: string, { shown, real }: WorkspacePath, basis: Stats | undefined): void {
  if (basis !== undefined) {
    const now = lstatSync(real, { throwIfNoEntry: false });
    if (now === undefined || !isSameVersion(now, basis)) throw changedSince(shown, "while it was being edited");
  }
  renameSync(temporary, real);
}

export function changedSince(shown: string, since: string): CodedError {
  return toolError(
    "FILE_CHANGED",
    `The file ${quoted(shown)} has changed ${since}, so nothing was written. Read it again and repeat what is still right.`,
  );
}

/** Gives the new file the owner and the mode of the old. */
async function takeOver(handle: FileHandle, stats: Stats): Promise<void> {
  const own = await handle.stat();
  if (own.uid !== stats.uid || own.gid !== stats.gid) {
    // Only root may give a file away; otherwise it becomes ours, as when an editor saves it.
    await handle.chown(stats.uid, stats.gid).catch(() => undefined);
  }
  await handle.chmod(stats.mode & 0o7777);
}
