/** The new store while it is being made: a file of its own, filled without locks or syncs, whole before it is named. */
import { closeSync, existsSync, linkSync, openSync, renameSync, rmSync, statSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import type { Random } from "@turnkeeper/kernel";
import { Connection } from "../connection.ts";
import { sharedFileSystem } from "../file-system.ts";
import { migrate } from "../migrations.ts";
import { chooseJournal } from "../sqlite-version.ts";
import type { JournalMode } from "../sqlite-version.ts";
import { codeOf, storeError } from "../store-failure.ts";
import { syncToDisk } from "./offline-file.ts";
import { companionsOf, existsError, partialPathOf } from "./partial-output.ts";
import type { FoundRow } from "./row-examination.ts";
import { TableShapes } from "./table-shape.ts";

/** Pages or sessions a transaction; one that holds all would keep all of it in memory. */
const stepsPerTransaction = 500;

export class RebuiltStore {
  readonly #output: string;
  readonly #path: string;
  readonly rows: Connection;
  readonly shapes: TableShapes;
  readonly #seeds = new Map<string, FoundRow[]>();
  #openStepCount = 0;

  constructor(output: string, random: Random) {
    this.#output = output;
    this.#path = partialPathOf(output);
    try {
      closeSync(openSync(this.#path, "wx", 0o600));
    } catch (error) {
      throw codeOf(error) === "EEXIST" ? existsError(this.#path) : error;
    }
    this.rows = new Connection(this.#path, "write");
    this.rows.execute(
      "PRAGMA journal_mode = MEMORY; PRAGMA temp_store = FILE; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536",
    );
    migrate(this.rows, this.#path, random);
    // Parents may come after their children; that all are there is checked at the end.
    this.rows.execute("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF");
    this.shapes = new TableShapes(this.rows);
    for (const table of this.shapes.brought) {
      this.#seeds.set(table, this.rows.all<FoundRow>(`SELECT * FROM ${table}`));
      this.rows.execute(`DELETE FROM ${table}`);
    }
    // The mending asks turn by turn; a store itself does without this index.
    this.rows.execute("CREATE INDEX recovery_by_turn ON entry (session_no, turn_id, seq)");
    this.rows.run("BEGIN");
  }

  /** Once a page or session: cuts the work into transactions. */
  step(): void {
    if (++this.#openStepCount < stepsPerTransaction) return;
    this.#openStepCount = 0;
    this.rows.run("COMMIT");
    this.rows.run("BEGIN");
  }

  /** Puts back what a new store begins with and no page had; the numbering of inputs goes on behind them all. */
  restoreSeeds(): void {
    for (const [table, seeds] of this.#seeds)
      for (const seed of seeds) {
        const names = Object.keys(seed);
        const values = names.map((name) => {
          const value = seed[name] ?? null;
          return typeof value === "bigint" || Buffer.isBuffer(value) ? String(value) : value;
        });
        const places = names.map(() => "?").join(", ");
        this.rows.run(
          `INSERT INTO ${table} (${names.join(", ")}) VALUES (${places}) ON CONFLICT DO NOTHING`,
          ...values,
        );
      }
    this.numberInputs();
  }

  numberInputs(): void {
    this.rows.run("UPDATE store SET last_input_seq = max(last_input_seq, coalesce((SELECT max(seq) FROM input), 0))");
  }

  /** What is found by: where each turn's entries lie, and the minute in which each session changed. */
  place(): void {
    this.rows.run("UPDATE turn SET from_seq = 1, through_seq = CASE WHEN outcome IS NOT NULL THEN 0 END");
    this.rows.run(
      `UPDATE turn SET from_seq = span.from_seq, through_seq = CASE WHEN outcome IS NOT NULL THEN span.through_seq END
       FROM (SELECT session_no, turn_id, min(seq) AS from_seq, max(seq) AS through_seq FROM entry WHERE late = 0
             GROUP BY session_no, turn_id) AS span
       WHERE span.session_no = turn.session_no AND span.turn_id = turn.turn_id`,
    );
    this.rows.run("UPDATE session SET updated_minute = CAST(updated_at_ms / 60000 AS INTEGER)");
  }

  /** Ends the filling: every row that is referred to is there, and the journal is one that stores have. */
  finish(wanted: JournalMode): void {
    this.place();
    this.rows.execute("DROP INDEX recovery_by_turn");
    this.rows.run("COMMIT");
    const broken = this.rows.all<{ table: string }>('SELECT "table" FROM pragma_foreign_key_check');
    if (broken[0])
      throw storeError("STORE_CONTRACT", `The recovered rows of ${broken[0].table} refer to rows that are not there.`);
    const version = this.rows.get<{ version: string }>("SELECT sqlite_version() AS version")?.version ?? "";
    this.rows.execute("PRAGMA locking_mode = NORMAL; PRAGMA synchronous = FULL");
    this.rows.pragma(
      `journal_mode = ${chooseJournal({ version, wanted, sharedFileSystem: sharedFileSystem(this.#path) }).mode}`,
    );
    this.rows.close();
  }

  /** Gives the finished file its name, unless something has that name by now. Nobody may have it open. */
  publish(): void {
    const spool = `${this.#path}-spool`;
    for (const path of companionsOf(this.#output)) if (path !== spool) rmSync(path, { recursive: true });
    syncToDisk(this.#path);
    // The spool first: a store that has its name has its spool.
    if (existsSync(spool)) renameSync(spool, `${this.#output}-spool`);
    try {
      this.#name();
    } catch (error) {
      if (existsSync(`${this.#output}-spool`)) renameSync(`${this.#output}-spool`, spool);
      throw error;
    }
    syncToDisk(dirname(this.#output));
  }

  #name(): void {
    try {
      linkSync(this.#path, this.#output);
      unlinkSync(this.#path);
    } catch (error) {
      if (codeOf(error) === "EEXIST") throw existsError(this.#output);
      // No hard links on this file system: the look before the renaming is all there is.
      if (statSync(this.#output, { throwIfNoEntry: false })) throw existsError(this.#output);
      renameSync(this.#path, this.#output);
    }
  }
}
