import { existsSync, linkSync, mkdirSync, unlinkSync } from "node:fs";
import { basename, join } from "node:path";
import type { FileAnchor } from "./file-anchor.ts";

/** A larger file is not copied: the process would stand still meanwhile. */
const rescuedBytesMax = 512 * 1024 * 1024;

/** What was saved of files that nobody could have brought back. */
export type Rescue =
  /** The log stands at its path again: the store is as its last acknowledged write left it. */
  | { readonly kind: "log" }
  /** Database and log are in this folder, as the last acknowledged write left them. */
  | { readonly kind: "folder"; readonly path: string };

/** The first that nothing has. */
function makeFolder(path: string): string {
  for (let number = 1; ; number++) {
    const folder = number === 1 ? `${path}-rescued` : `${path}-rescued-${number}`;
    if (existsSync(folder)) continue;
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  }
}

/** Only under an unchanged database: a log that was laid over rows of somebody else would tear both. */
function putLogBack(path: string, database: FileAnchor, wal: FileAnchor): Rescue | undefined {
  const gone = wal.stats();
  // The moment at which its last name went; a database that was written later was written without it.
  const isAlone = gone.nlink === 0 && !existsSync(`${path}-wal`) && database.stats().mtimeMs <= gone.ctimeMs;
  if (!isAlone) return undefined;
  const made = `${path}-wal~`;
  wal.copyTo(made);
  try {
    // Not over a log that somebody has begun by now.
    linkSync(made, `${path}-wal`);
  } finally {
    unlinkSync(made);
  }
  return { kind: "log" };
}

function laySafe(path: string, database: FileAnchor, wal: FileAnchor): Rescue | undefined {
  const { nlink, size } = database.stats();
  // What was only moved away is there, and whoever moved it can bring it back.
  if (nlink > 0 || size > rescuedBytesMax) return undefined;
  const folder = makeFolder(path);
  database.copyTo(join(folder, basename(path)));
  wal.copyTo(join(folder, `${basename(path)}-wal`));
  return { kind: "folder", path: folder };
}

/**
 * Saves through the descriptors that are still open what has no name any more: an unlinked log is put back, a database
 * that was unlinked or replaced is laid into a folder of its own together with its log. Where that fails nothing is lost
 * that was not lost before.
 */
export function rescue(
  path: string,
  files: { readonly database: FileAnchor; readonly wal: FileAnchor; readonly isDatabaseThere: boolean },
): Rescue | undefined {
  const { database, wal, isDatabaseThere } = files;
  try {
    return isDatabaseThere ? putLogBack(path, database, wal) : laySafe(path, database, wal);
  } catch {
    // A full disk, a file system without links: the error that is about to be told says what became of the files.
    return undefined;
  }
}
