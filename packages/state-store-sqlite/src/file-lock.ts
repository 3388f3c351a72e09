import { closeSync, openSync } from "node:fs";
import Database from "better-sqlite3";
import type { Host } from "@turnkeeper/kernel";
import { codeOf, isBusy } from "./store-failure.ts";

/** `busy`: somebody else had the lock for the whole of the wait, and the work was not begun. */
export type HoldOutcome<Value> = { readonly kind: "held"; readonly value: Value } | { readonly kind: "busy" };

/** A lock between the processes of one host. The kernel keeps it, so it is free at once when its holder dies. */
export interface FileLock {
  /** Does `work` while nobody else holds the lock, in this process or another. Rejects as `work` does. */
  hold<Value>(work: () => Promise<Value>): Promise<HoldOutcome<Value>>;
}

export interface FileLockOptions {
  /** How long a holder is waited for, in milliseconds. Default 60,000: longer than two requests that time out. */
  readonly waitMs?: number;
  /** How often it is looked, in milliseconds, give or take a half. Default 50: nobody notices, and it costs nothing. */
  readonly pollMs?: number;
}

/** Mode 0600, made where it is missing. A file that is there is not opened: closing it would drop SQLite's locks. */
function ensureFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

/** Work that waits for what nobody can reach any more is collected, and its connection, with the lock, would go too. */
const held = new Set<Database.Database>();

/** A connection that holds the lock, or nothing while somebody else does. */
function tryLock(path: string): Database.Database | undefined {
  const database = new Database(path, { fileMustExist: true, timeout: 0 });
  try {
    // Nothing is ever written: the reserved lock of a transaction is the lock, and the file stays empty.
    database.exec("BEGIN IMMEDIATE");
    return database;
  } catch (error) {
    database.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

/**
 * Gives the lock of `path`, an empty file of its own in a folder that exists. Nothing is opened until it is held. A
 * holder that is stopped (SIGSTOP) still holds it.
 */
export function fileLock(
  path: string,
  { host }: { readonly host: Host },
  { waitMs = 60_000, pollMs = 50 }: FileLockOptions = {},
): FileLock {
  const pause = (): Promise<void> =>
    new Promise((resolve) => void host.timers.after(pollMs * (0.5 + host.random.unit()), resolve));

  return {
    async hold(work) {
      ensureFile(path);
      const untilMs = host.clock.monotonicMs() + waitMs;
      let database = tryLock(path);
      while (!database) {
        if (host.clock.monotonicMs() >= untilMs) return { kind: "busy" };
        await pause();
        database = tryLock(path);
      }
      held.add(database);
      try {
        return { kind: "held", value: await work() };
      } finally {
        held.delete(database);
        database.close();
      }
    },
  };
}
