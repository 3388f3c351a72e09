import { existsSync } from "node:fs";
import { Connection } from "./connection.ts";

/** Whether anything of a log lies beside the file: it is somebody's then, and stays. */
export function hasLog(path: string): boolean {
  return existsSync(`${path}-wal`) || existsSync(`${path}-shm`);
}

/**
 * A reader makes the files of a log and leaves them; SQLite removes them, where nobody else uses them, with the last
 * connection that may write. Nothing is in them, so nothing is written for it. Answers that connection, to be closed last;
 * to be called only where no log was there before the reader.
 */
export function logRemover(path: string): Pick<Connection, "close"> | undefined {
  let writer: Connection | undefined;
  try {
    writer = new Connection(path, "write");
    // It takes part in the log once it has read.
    writer.get("SELECT count(*) FROM sqlite_schema");
  } catch {
    // A file that this user may only read, or that is damaged: its log stays, empty.
  }
  return writer;
}
