/**
 * What the file tools of one process remember of files: which version a session has last seen, so that nobody edits
 * what has changed under him, and who writes to a file just now, so that two calls of one answer take their turns.
 */

import type { Stats } from "node:fs";

/** Enough to tell that a file is another one or was written to. Not a digest: reading a window must not read it all. */
type FileVersion = string;

// A session that reads more files than this may edit the oldest of them unchecked: it is a help, not a lock.
const versionsMax = 10_000;

/** What `createSeenFiles` makes: hand one to all file tools of a process. */
export interface SeenFiles {
  /** The session knows the file as these stats describe it. */
  note(sessionId: string, real: string, stats: Stats): void;
  /** Whether the file is another than the one that the session has seen; false where it has seen none. */
  hasChanged(sessionId: string, real: string, stats: Stats): boolean;
  /** Runs the body when everybody who came before to the same file is done. */
  inTurn<Value>(real: string, body: () => Promise<Value>): Promise<Value>;
}

/** A memory for the file tools of one process; bounded, and empty after a restart. */
export function createSeenFiles(): SeenFiles {
  return new SeenFilesInMemory();
}

class SeenFilesInMemory implements SeenFiles {
  /** By session and real path, the oldest first. */
  readonly #versions = new Map<string, FileVersion>();
  readonly #writers = new Map<string, Promise<unknown>>();

  note(sessionId: string, real: string, stats: Stats): void {
    const key = keyOf(sessionId, real);
    this.#versions.delete(key);
    this.#versions.set(key, versionOf(stats));
    if (this.#versions.size <= versionsMax) return;
    for (const oldest of this.#versions.keys()) {
      this.#versions.delete(oldest);
      return;
    }
  }

  hasChanged(sessionId: string, real: string, stats: Stats): boolean {
    const seen = this.#versions.get(keyOf(sessionId, real));
    return seen !== undefined && seen !== versionOf(stats);
  }

  async inTurn<Value>(real: string, body: () => Promise<Value>): Promise<Value> {
    const before = this.#writers.get(real) ?? Promise.resolve();
    const own = before.then(body, body);
    const settled = own.catch(() => undefined);
    this.#writers.set(real, settled);
    try {
      return await own;
    } finally {
      if (this.#writers.get(real) === settled) this.#writers.delete(real);
    }
  }
}

export function isSameVersion(left: Stats, right: Stats): boolean {
  return versionOf(left) === versionOf(right);
}

function versionOf({ dev, ino, size, mtimeMs }: Stats): FileVersion {
  return `${dev}:${ino}:${size}:${mtimeMs}`;
}

function keyOf(sessionId: string, real: string): string {
  return `${sessionId}\0${real}`;
}
