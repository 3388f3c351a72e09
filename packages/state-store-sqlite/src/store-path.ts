import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { syncFolder } from "./folder-sync.ts";
import { codeOf, explain, storeError } from "./store-failure.ts";
import type { StoreError } from "./store-failure.ts";

const othersMask = 0o077;
const fileMode = 0o600;
const folderMode = 0o700;

function refused(path: string, why: string, next: string): StoreError {
  return storeError("STORE_UNAVAILABLE", `Could not open the store ${path}: ${why}. ${next}`, { path });
}

/** The real path: the folder's for a file that is not there yet, the file's own where it is a symbolic link. */
function realPathOf(path: string): string {
  const inFolder = join(realpathSync(dirname(path)), basename(path));
  const isLink = lstatSync(inFolder, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? realpathSync(inFolder) : inFolder;
}

/** SQLite deletes a WAL that it finds beside an empty database, and with it what was acknowledged last. */
function refuseLoneWal(path: string): void {
  // The WAL first: whoever makes a store now makes its file before its WAL.
  if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  throw refused(
    path,
    `the file is missing or empty, and ${path}-wal still holds rows of it`,
    `Bring the file back, or move ${path}-wal and ${path}-shm away to begin anew.`,
  );
}

/**
 * SQLite syncs the folder of a file that it makes, but not where that folder stands: a power cut would take a new
 * folder away, with everything in it that was acknowledged. (Not `recursive`, which tells a read-only file system as a
 * missing folder.)
 */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: folderMode });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    // Another process was faster; its name may be as new as if this one had made it.
  }
  syncFolder(dirname(folder));
}

/** Made empty, for its owner alone, before SQLite sees it: SQLite would make it readable for all. */
function makeFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", fileMode));
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    // Another process was faster; the file is there all the same.
  }
}

function refuseUnfit(path: string): void {
  const stats = statSync(path);
  if (stats.isDirectory()) throw refused(path, "it is a folder", "Name a file in it, for example state.db.");
  if (!stats.isFile()) throw refused(path, "it is not a regular file", "Choose another path.");
  if (stats.nlink > 1)
    throw refused(
      path,
      `the file has ${stats.nlink} hard links, and each would get a journal of its own, which loses rows`,
      "Copy it to a path of its own and open the copy.",
    );
}

/**
 * Takes a store's files from everybody else, and answers a note for each that could not be. SQLite gives a -wal and
 * -shm that it makes later the mode of the database.
 */
export function closeToOthers(path: string): string[] {
  return [path, `${path}-wal`, `${path}-shm`].flatMap((file) => {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (!stats || (stats.mode & othersMask) === 0) return [];
    try {
      // By path: changing the mode through an open descriptor would end with closing it.
      chmodSync(file, fileMode);
      return [];
    } catch {
      return [
        `${file} can be read by other users, and its mode could not be changed. Run chmod 600 on it as its owner.`,
      ];
    }
  });
}

/**
 * Leads a path to a file that SQLite may open: real, regular, of one name, writable, made (0600) where it is missing,
 * in a folder that is made (0700) too. An existing file is neither read nor changed. Throws the store's coded errors.
 */
export function preparePath(wanted: string): string {
  if (wanted === "" || wanted.startsWith(":") || wanted.startsWith("file:") || wanted.includes("\0"))
    throw refused(
      wanted,
      "a store is a file",
      "Name its path; createMemoryStore of @turnkeeper/state-store keeps nothing on disk.",
    );
  const asked = resolve(wanted);
  try {
    makeFolder(dirname(asked));
    const path = realPathOf(asked);
    refuseLoneWal(path);
    makeFile(path);
    refuseUnfit(path);
    accessSync(path, constants.R_OK | constants.W_OK);
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
    return path;
  } catch (error) {
    throw explain(error, { attempt: "open", path: asked, phase: "open" });
  }
}
