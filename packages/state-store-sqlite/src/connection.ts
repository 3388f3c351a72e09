import Database from "better-sqlite3";
import { isIoError } from "./store-failure.ts";

export type SqlValue = string | number | null;

type Statement = Database.Statement<SqlValue[]>;

/** How a commit is made: `full` waits for the disk, `normal` leaves that to the next one that does. */
export type Durability = "normal" | "full";

/** How long SQLite itself may wait for a lock: it blocks the event loop meanwhile, so the long wait is ours. */
const nativeBusyMs = 5;

/** The WAL is cut back to this after a checkpoint, should a long reader once have let it grow. */
const walLimitBytes = 64 * 1024 * 1024;

/** One SQLite connection, with every statement prepared once. All of it is synchronous. */
export class Connection {
  readonly #database: Database.Database;
  readonly #statements = new Map<string, Statement>();
  readonly #listStatements = new Map<string, Statement>();
  #durability: Durability | undefined;
  #isRollbackJournal: boolean | undefined;

  constructor(path: string, access: "read" | "write") {
    this.#database = new Database(path, {
      readonly: access === "read",
      fileMustExist: true,
      timeout: nativeBusyMs,
    });
    this.#database.exec("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;");
    if (access === "write")
      // SQLite's own checkpoints keep a failed sync to themselves.
      this.#database.exec(`PRAGMA journal_size_limit = ${walLimitBytes}; PRAGMA wal_autocheckpoint = 0`);
  }

  #prepared(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare<SqlValue[]>(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** The first row, as the schema declares it. */
  get<Row>(sql: string, ...values: readonly SqlValue[]): Row | undefined {
    return this.#prepared(sql).get(...values) as Row | undefined;
  }

  all<Row>(sql: string, ...values: readonly SqlValue[]): Row[] {
    return this.#prepared(sql).all(...values) as Row[];
  }

  /** Every row as the list of its values: for long results, since an object a row takes as long as the row itself. */
  lists<Values extends readonly unknown[]>(sql: string, ...values: readonly SqlValue[]): Values[] {
    let statement = this.#listStatements.get(sql);
    if (!statement) {
      statement = this.#database.prepare<SqlValue[]>(sql).raw(true);
      this.#listStatements.set(sql, statement);
    }
    return statement.all(...values) as Values[];
  }

  /** Row by row, for scans. The loop must not await: an open iterator blocks its connection and every checkpoint. */
  iterate<Row>(sql: string, ...values: readonly SqlValue[]): IterableIterator<Row> {
    return this.#prepared(sql).iterate(...values) as IterableIterator<Row>;
  }

  /** Answers how many rows were changed. */
  run(sql: string, ...values: readonly SqlValue[]): number {
    return this.#prepared(sql).run(...values).changes;
  }

  /** Runs SQL text of our own that is not prepared: migrations, pragmas. */
  execute(sql: string): void {
    this.#database.exec(sql);
  }

  pragma(name: string): unknown {
    return this.#database.pragma(name, { simple: true });
  }

  /** Takes the write lock first: a transaction that reads and then upgrades fails at once, whatever the timeout. */
  begin(durability: Durability): void {
    if (this.#durability !== durability) {
      // A rollback journal commits by being unlinked, which `EXTRA` alone makes durable.
      this.#isRollbackJournal ??= this.pragma("journal_mode") !== "wal";
      const level = durability === "normal" ? "NORMAL" : this.#isRollbackJournal ? "EXTRA" : "FULL";
      // The pragma acts when it is compiled, so it cannot be prepared; inside a transaction it is refused.
      this.#database.exec(`PRAGMA synchronous = ${level}`);
      this.#durability = durability;
    }
    try {
      this.run("BEGIN IMMEDIATE");
    } catch (error) {
      // An I/O error that passes is common enough on worn disks and network file systems, and nothing has begun yet.
      if (!isIoError(error)) throw error;
      this.rollback();
      this.run("BEGIN IMMEDIATE");
    }
  }

  beginRead(): void {
    this.run("BEGIN");
  }

  commit(): void {
    this.run("COMMIT");
  }

  /** SQLite itself rolls back on some errors, a full disk among them, and takes every savepoint with it. */
  get isInTransaction(): boolean {
    return this.#database.inTransaction;
  }

  rollback(): void {
    if (this.isInTransaction) this.run("ROLLBACK");
  }

  /** Brings what it can of the log into the database, and waits for nobody. Throws what SQLite throws. */
  checkpoint(): void {
    this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)");
  }

  close(): void {
    this.#database.close();
  }
}
