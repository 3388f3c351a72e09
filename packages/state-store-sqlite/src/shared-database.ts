/**
 * One open database file: its two connections, its writes one after another, and the seal.
 *
 * Owns APPEND-3: an acknowledged append survives kill -9 and power loss (as far as the OS tells the truth). A call
 * that writes turn data is answered after a commit at `full`, and after the file was seen to be the same as before it.
 * Owns STORE-1: after a structural error or a replaced file the handle never writes again, not at close either. The
 * seal is for life: every later call is refused with the error that set it, nothing is closed (a close would
 * checkpoint a dead WAL over rows of others), and the registry keeps the connections from being collected.
 *
 * Leaves to the registry: who shares this file, and when it ends. Leaves to the ports: what is in a transaction.
 *
 * | state | event | next | effect |
 * | --- | --- | --- | --- |
 * | open | write, files intact | open | BEGIN IMMEDIATE, body, COMMIT, identity again, answer |
 * | open | lock held by another process | open | wait in `await`, run again, STORE_BUSY when patience ends |
 * | open | files moved, structural error, failed sync | sealed | the call and all that wait are rejected |
 * | open | close | closed | connections closed, the WAL checkpointed |
 * | sealed | write, read, close | sealed | rejected; not one system call on the files |
 */
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { StoreErrorCode } from "@turnkeeper/state-store";
import type { Connection, Durability } from "./connection.ts";
import type { FileIdentity } from "./file-identity.ts";
import type { JournalMode } from "./sqlite-version.ts";
import { explain, isBusy, isFinal, replacedError, sealedError } from "./store-failure.ts";
import type { FailedCall, Phase, StoreError } from "./store-failure.ts";
import { DurabilityRaised, Transaction } from "./transaction.ts";
import { WriteQueue } from "./write-queue.ts";
import type { WriteJob } from "./write-queue.ts";

/** What a store knows of its file. */
export interface StoreFile {
  /** The real path, symbolic links resolved. */
  readonly path: string;
  readonly journalMode: JournalMode;
  readonly sqliteVersion: string;
  readonly schemaVersion: number;
  /** Findings an operator should see, a sentence each. */
  readonly notes: readonly string[];
}

/** A call, as the queue and the messages need it. */
export interface Call {
  readonly owner: object;
  readonly host: Host;
  readonly attempt: string;
  readonly patienceMs: number;
}

export interface WriteCall extends Call {
  readonly durability: Durability;
}

function jobOf<T>(call: Call, once: () => T, resolve: (value: T) => void, reject: (error: unknown) => void): WriteJob {
  const run = (): "settled" | "busy" => {
    try {
      resolve(once());
    } catch (error) {
      if (isBusy(error)) return "busy";
      reject(error);
    }
    return "settled";
  };
  return { owner: call.owner, host: call.host, attempt: call.attempt, patienceMs: call.patienceMs, run, reject };
}

interface Parts {
  readonly file: StoreFile;
  readonly reader: Connection;
  readonly writer: Connection;
  readonly identity: FileIdentity;
}

export class SharedDatabase {
  readonly file: StoreFile;
  readonly #reader: Connection;
  readonly #writer: Connection;
  readonly #identity: FileIdentity;
  readonly #queue: WriteQueue;
  #seal: StoreError | undefined;

  constructor(parts: Parts) {
    this.file = parts.file;
    this.#reader = parts.reader;
    this.#writer = parts.writer;
    this.#identity = parts.identity;
    this.#queue = new WriteQueue(parts.file.path);
  }

  /** Whether it is sealed; looks at the files first, and seals it when they are not those that were opened. */
  isSealed(): boolean {
    if (this.#seal === undefined) this.#look({ attempt: "go on with", path: this.file.path, phase: "open" });
    return this.#seal !== undefined;
  }

  /** Whether another file at this path would meet the WAL of this database, and have it replayed onto itself. */
  hauntsPath(path: string): boolean {
    return this.file.path === path && this.isSealed() && this.#identity.isWalThere();
  }

  /** What a caller is told that may not use a sealed database. */
  refusal(attempt: string, phase: Phase = "begin"): unknown {
    return this.#seal && sealedError({ attempt, path: this.file.path, phase }, this.#seal);
  }

  write<T>(call: WriteCall, body: (tx: Transaction) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.add(jobOf(call, () => this.#commit(call, call.durability, body), resolve, reject));
    });
  }

  /** Reads one consistent state. It waits for nobody under a WAL; a rollback journal may make it wait. */
  read<T>(call: Call, body: (tx: Transaction) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const job = jobOf(call, () => this.#readOnce(call, body), resolve, reject);
      if (job.run() === "busy") this.#queue.wait(job);
    });
  }

  /** Resolves when no call of this handle waits any more. */
  settled(owner: object): Promise<void> {
    return this.#queue.settled(owner);
  }

  /**
   * Ends both connections, the reader first so that the last one checkpoints the WAL. A sealed database stays as it is;
   * answers whether it ended.
   */
  close(): boolean {
    if (this.isSealed()) return false;
    this.#reader.close();
    this.#writer.close();
    return true;
  }

  #commit<T>(call: WriteCall, durability: Durability, body: (tx: Transaction) => T): T {
    if (this.#seal !== undefined) throw this.refusal(call.attempt);
    let phase: Phase = "begin";
    const failed = (): FailedCall => ({ attempt: call.attempt, path: this.file.path, phase });
    try {
      this.#guard(failed);
      this.#writer.begin(durability);
      phase = "body";
      const value = body(new Transaction(this.#writer, call.host.clock, durability));
      phase = "commit";
      this.#writer.commit();
      phase = "acknowledge";
      // A lease in a file that was replaced this instant fences nothing: the first append under it is refused.
      if (durability === "full") this.#guard(failed);
      return value;
    } catch (error) {
      this.#rollBack(this.#writer, failed());
      if (error instanceof DurabilityRaised) return this.#commit(call, "full", body);
      throw this.#judged(error, failed());
    }
  }

  #readOnce<T>(call: Call, body: (tx: Transaction) => T): T {
    if (this.#seal !== undefined) throw this.refusal(call.attempt);
    try {
      this.#reader.beginRead();
      const value = body(new Transaction(this.#reader, call.host.clock, "normal"));
      this.#reader.commit();
      return value;
    } catch (error) {
      const failed: FailedCall = { attempt: call.attempt, path: this.file.path, phase: "read" };
      this.#rollBack(this.#reader, failed);
      throw this.#judged(error, failed);
    }
  }

  #guard(failed: () => FailedCall): void {
    if (!this.#identity.isIntact()) throw this.#sealWith(replacedError(failed()));
  }

  /** A connection that cannot even roll back is in no state to be used again. */
  #rollBack(connection: Connection, call: FailedCall): void {
    if (this.#seal !== undefined) return;
    try {
      connection.rollback();
    } catch (error) {
      throw this.#sealWith(explain(error, call));
    }
  }

  /** What the caller is told. A file that was replaced under a call explains whatever else SQLite made of it. */
  #judged(error: unknown, call: FailedCall): unknown {
    if (error === this.#seal || isBusy(error)) return error;
    const told = explain(error, call);
    if (told === error) return error;
    this.#look(call);
    if (this.#seal !== undefined) return this.#seal;
    return isFinal(error) ? this.#sealWith(told) : told;
  }

  #look(call: FailedCall): void {
    try {
      if (!this.#identity.isIntact()) this.#sealWith(replacedError(call));
    } catch (error) {
      // Files that cannot be seen cannot be trusted either.
      this.#sealWith(explain(error, call));
    }
  }

  #sealWith(error: unknown): unknown {
    if (!CodedError.is<StoreErrorCode>(error)) return error;
    this.#seal = error;
    this.#queue.rejectAll((attempt) => this.refusal(attempt));
    return error;
  }
}
