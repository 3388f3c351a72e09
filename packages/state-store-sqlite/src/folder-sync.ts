import { closeSync, constants, fsyncSync, openSync } from "node:fs";

/** Brings the names in a folder to the disk: a file is as durable as its name. */
export function syncFolder(folder: string): void {
  // Windows opens no folder for it, and NTFS keeps names in a journal of its own.
  if (process.platform === "win32") return;
  const descriptor = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
