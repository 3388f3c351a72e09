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
 * | open | files moved, structural error, failed sync, a checkpoint's too | sealed | the call and all that wait are rejected |
 * | open | the log is long | open | a checkpoint, behind the answers |
 * | open | close | closed | connections closed, the WAL checkpointed |
 * | sealed | write, read, close | sealed | rejected; not one system call on the files |
 */
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { StoreErrorCode } from "@turnkeeper/state-store";
import type { Connection, Durability } from "./connection.ts";
import { refuseMigrated } from "./migrations.ts";
import type { JournalMode } from "./sqlite-version.ts";
import type { StoreGuard } from "./store-guard.ts";
import { explain, FilesChanged, isBusy, isFailure, isFinal, isUndone, sealedError } from "./store-failure.ts";
import type { FileFinding, Phase, StoreError } from "./store-failure.ts";
import { DurabilityRaised, Transaction } from "./transaction.ts";
import { MemberRefused, WriteGroup } from "./write-group.ts";
import { WriteQueue } from "./write-queue.ts";
import type { Write } from "./write-queue.ts";

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

/** What an attempt at a group learned for the next one. */
interface GroupAttempt {
  readonly atLeast: Durability;
  /** Each member in a savepoint of its own. */
  readonly isApart: boolean;
}

const firstAttempt: GroupAttempt = { atLeast: "normal", isApart: false };

/** As long as SQLite itself lets a log grow: some 4 MB. */
const checkpointFrames = 1_000;
/** A look at the log's length costs a commit's fiftieth. */
const commitsPerLook = 16;

interface Parts {
  readonly file: StoreFile;
  readonly reader: Connection;
  readonly writer: Connection;
  readonly guard: StoreGuard;
  /** Notes what the file begins with now; called after a checkpoint. */
  readonly noteLog: () => void;
}

export class SharedDatabase {
  readonly file: StoreFile;
  readonly #reader: Connection;
  readonly #writer: Connection;
  readonly #guard: StoreGuard;
  readonly #noteLog: () => void;
  readonly #queue: WriteQueue;
  #seal: StoreError | undefined;
  #commitCount = 0;
  #isClosed = false;

  constructor(parts: Parts) {
    this.file = parts.file;
    this.#reader = parts.reader;
    this.#writer = parts.writer;
    this.#guard = parts.guard;
    this.#noteLog = parts.noteLog;
    this.#queue = new WriteQueue(parts.file.path, (writes) => this.#commitGroup(writes));
  }

  /** Whether it is sealed; looks at the files first, and seals it when they are not those that were opened. */
  isSealed(): boolean {
    if (this.#seal === undefined) {
      try {
        this.#check(this.#guard.look());
      } catch (error) {
        this.#sealWith(explain(error, { attempt: "go on with", path: this.file.path, phase: "open" }));
      }
    }
    return this.#seal !== undefined;
  }

  /** Whether another file at this path would meet the WAL of this database, and have it replayed onto itself. */
  hauntsPath(path: string): boolean {
    return this.file.path === path && this.isSealed() && this.#guard.isLogThere();
  }

  /**
   * Looks at the files and throws what a write would be refused with: a store whose files moved is sealed by it, as it
   * would be by that write. One that cannot be seen now may be seen again.
   */
  check(attempt: string): void {
    try {
      if (this.#seal === undefined) this.#check(this.#guard.look());
    } catch (error) {
      const told = explain(error, { attempt, path: this.file.path, phase: "begin" });
      if (isFinal(error)) this.#sealWith(told);
      throw told;
    }
    if (this.#seal !== undefined) throw this.refusal(attempt);
  }

  /** What a caller is told that may not use a sealed database. */
  refusal(attempt: string, phase: Phase = "begin"): unknown {
    return this.#seal && sealedError({ attempt, path: this.file.path, phase }, this.#seal);
  }

  /** Runs `body` in a transaction that it may share with the writes that wait beside it; each is answered alone. */
  write<T>(call: WriteCall, body: (tx: Transaction) => T): Promise<T> {
    const { owner, host, attempt, patienceMs, durability } = call;
    const sinceMs = host.clock.monotonicMs();
    return new Promise<T>((resolve, reject) => {
      let answer: () => void;
      const stage = (tx: Transaction): void => {
        const value = body(tx);
        answer = () => resolve(value);
      };
      // Each property by name: to spread the call and add functions to it takes as long as a statement of SQLite.
      this.#queue.add({
        owner,
        host,
        attempt,
        sinceMs,
        patienceMs,
        durability,
        stage,
        resolve: () => answer(),
        reject,
      });
    });
  }

  /** Reads one consistent state. It waits for nobody under a WAL; a rollback journal may make it wait with the writes. */
  async read<T>(call: Call, body: (tx: Transaction) => T): Promise<T> {
    try {
      return this.#readOnce(call, body);
    } catch (error) {
      if (!isBusy(error)) throw error;
      return this.write({ ...call, durability: "normal" }, body);
    }
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
    this.#isClosed = true;
    this.#reader.close();
    this.#writer.close();
    this.#guard.end();
    return true;
  }

  /** Answers how many of the first writes were settled; 0 when another process has the lock. */
  #commitGroup(writes: readonly Write[], attempt: GroupAttempt = firstAttempt): number {
    if (this.#seal !== undefined) {
      for (const write of writes) write.reject(this.refusal(write.attempt));
      return writes.length;
    }
    const group = new WriteGroup(writes, this.#writer);
    const durability = attempt.atLeast === "full" ? "full" : group.durability;
    let phase: Phase = "begin";
    try {
      if (durability === "normal") this.#check(this.#guard.look());
      this.#writer.begin(durability);
      // A lease in a file that was replaced this instant fences nothing: the first append under it is refused.
      if (durability === "full") {
        this.#check(this.#guard.inspect());
        refuseMigrated(this.#writer, this.file.path);
      }
      phase = "body";
      group.stage(durability, attempt.isApart);
      phase = "commit";
      this.#writer.commit();
      phase = "acknowledge";
      if (durability === "full") this.#check(this.#guard.look());
    } catch (error) {
      return this.#settleFailed(error, phase, group.writes, attempt);
    }
    group.answer();
    this.#countCommit(writes);
    return group.writes.length;
  }

  /** The log grows with every commit; now and then one looks at how long it is. */
  #countCommit([first]: readonly Write[]): void {
    if (++this.#commitCount % commitsPerLook !== 0 || this.#guard.logFrameCount < checkpointFrames) return;
    // Behind the answers: nobody's write waits for it.
    first?.host.timers.soon(() => this.#checkpoint());
  }

  /** A sync that fails here is as final as that of a commit: rows that were lost in the log may lie before later ones. */
  #checkpoint(): void {
    if (this.#isClosed || this.#seal !== undefined) return;
    try {
      this.#check(this.#guard.look());
      this.#writer.checkpoint();
      this.#check(this.#guard.lookAtHeader());
      this.#noteLog();
    } catch (error) {
      if (!isBusy(error)) this.#diagnose(error, this.#writer, "begin");
    }
  }

  #settleFailed(error: unknown, phase: Phase, writes: readonly Write[], last: GroupAttempt): number {
    const tell = this.#diagnose(error, this.#writer, phase);
    if (this.#seal === undefined) {
      if (error instanceof DurabilityRaised) return this.#commitGroup(writes, { ...last, atLeast: "full" });
      if (error instanceof MemberRefused) return this.#commitGroup(writes, { ...last, isApart: true });
      if (isBusy(error)) return 0;
      if (writes.length > 1 && isUndone(error, phase)) return this.#commitOneByOne(writes);
    }
    for (const { attempt, reject } of writes) reject(tell(attempt));
    return writes.length;
  }

  #commitOneByOne(writes: readonly Write[]): number {
    const firstBusy = writes.findIndex((write) => this.#commitGroup([write]) === 0);
    return firstBusy === -1 ? writes.length : firstBusy;
  }

  #readOnce<T>(call: Call, body: (tx: Transaction) => T): T {
    if (this.#seal !== undefined) throw this.refusal(call.attempt);
    try {
      this.#reader.beginRead();
      const value = body(new Transaction(this.#reader, call.host.clock, "normal"));
      this.#reader.commit();
      return value;
    } catch (error) {
      throw this.#diagnose(error, this.#reader, "read")(call.attempt);
    }
  }

  #check(finding: FileFinding | undefined): void {
    if (finding === undefined) return;
    const isGone = finding === "deleted" || finding === "replaced";
    throw new FilesChanged(finding, isGone ? this.#guard.rescue() : undefined);
  }

  /**
   * Finds what is behind an error, seals the store where that is final, and answers how to tell each caller. Files
   * that were replaced under a call explain whatever else SQLite made of it.
   */
  #diagnose(error: unknown, connection: Connection, phase: Phase): (attempt: string) => unknown {
    const { path } = this.file;
    let cause = error;
    let isTrusted = true;
    try {
      connection.rollback();
      if (isFailure(error) && !isBusy(error)) this.#check(this.#guard.look());
    } catch (found) {
      // A connection that cannot even roll back is in no state to be used again, and files that cannot be seen are not.
      cause = found;
      isTrusted = false;
    }
    const tell = (attempt: string): unknown => explain(cause, { attempt, path, phase });
    if (!isTrusted || isFinal(cause)) this.#sealWith(tell("go on"));
    return tell;
  }

  #sealWith(error: unknown): void {
    if (CodedError.is<StoreErrorCode>(error)) this.#seal = error;
  }
}
