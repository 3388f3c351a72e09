/** Puts rows into the new store, one by one: of several copies the newest, and no intact row is lost to a clash. */
import { messageOf } from "@turnkeeper/kernel";
import type { Connection, SqlValue } from "../connection.ts";
import { codeOf } from "../store-failure.ts";
import type { Findings } from "./findings.ts";
import { faultOf, withoutBrokenHolder } from "./row-examination.ts";
import type { FoundRow } from "./row-examination.ts";
import { isNewer, keyOf } from "./row-versions.ts";
import type { TableShape } from "./table-shape.ts";
import type { FoundValue } from "./record.ts";

export interface FoundPlace {
  readonly page: number;
  readonly cell: number;
  readonly row: number;
}

type Outcome = "brought" | "older";

export class RowKeeper {
  readonly #rows: Connection;
  readonly #findings: Findings;

  constructor(rows: Connection, findings: Findings) {
    this.#rows = rows;
    this.#findings = findings;
  }

  keep(shape: TableShape, place: FoundPlace, values: readonly FoundValue[]): void {
    const { table, columns, rowidColumn } = shape;
    this.#findings.count(table, "foundCount");
    let row: FoundRow = Object.fromEntries(values.map((value, index) => [columns[index]?.name ?? "", value]));
    if (rowidColumn !== undefined) row[rowidColumn] = place.row;
    if (table === "lease") row = withoutBrokenHolder(row);
    const fault = faultOf(table, row) ?? this.#bring(table, rowidColumn, row);
    if (fault === "brought") this.#findings.count(table, "broughtCount");
    else if (fault === "older") this.#findings.count(table, "olderCount");
    else this.#findings.refuse({ table, ...place, reason: fault });
  }

  /** How the row was taken, or why it was not. */
  #bring(table: string, rowidColumn: string | undefined, row: FoundRow): Outcome | (string & {}) {
    try {
      if (this.#insert(table, row)) return "brought";
      return this.#replaceOlder(table, rowidColumn, row) ?? this.#insertBeside(table, rowidColumn, row);
    } catch (error) {
      if (!codeOf(error).startsWith("SQLITE_CONSTRAINT")) throw error;
      return `the row breaks a rule of its table (${messageOf(error)})`;
    }
  }

  #insert(table: string, row: FoundRow): boolean {
    const names = Object.keys(row);
    const places = names.map(() => "?").join(", ");
    return (
      this.#rows.run(
        `INSERT INTO ${table} (${names.join(", ")}) VALUES (${places}) ON CONFLICT DO NOTHING`,
        ...valuesOf(row, names),
      ) === 1
    );
  }

  /** Absent when there is no other copy of this very row. */
  #replaceOlder(table: string, rowidColumn: string | undefined, row: FoundRow): Outcome | undefined {
    const key = keyOf(table) ?? (rowidColumn === undefined ? [] : [rowidColumn]);
    if (key.length === 0) return undefined;
    const condition = key.map((name) => `${name} = ?`).join(" AND ");
    const known = this.#rows.get<FoundRow>(`SELECT * FROM ${table} WHERE ${condition}`, ...valuesOf(row, key));
    if (!known) return undefined;
    if (isNewer(table, row, known)) {
      const changed = Object.keys(row).filter((name) => name !== rowidColumn && !key.includes(name));
      this.#rows.run(
        `UPDATE OR IGNORE ${table} SET ${changed.map((name) => `${name} = ?`).join(", ")} WHERE ${condition}`,
        ...valuesOf(row, changed),
        ...valuesOf(row, key),
      );
    }
    return "older";
  }

  /** Another row has its number or its place: both are kept, since nothing tells which of the two is damaged. */
  #insertBeside(table: string, rowidColumn: string | undefined, row: FoundRow): Outcome | (string & {}) {
    const unnumbered = Object.fromEntries(Object.entries(row).filter(([name]) => name !== rowidColumn));
    if (rowidColumn !== undefined && this.#insert(table, unnumbered)) {
      if (table === "session")
        this.#findings.mend(
          String(row["session_id"]),
          `its number ${String(row["session_no"])} was taken; it has a new one`,
        );
      return "brought";
    }
    if (table === "turn" && row["outcome"] === null && this.#insertEnded(unnumbered)) return "brought";
    if (table === "entry" && this.#insertLate(unnumbered)) return "brought";
    return "it clashes with a row that was brought before";
  }

  /** Of two turns that run in one session only the later can; which it is, the mending sees by the fencing tokens. */
  #insertEnded(row: FoundRow): boolean {
    const ended = { ...row, outcome: "interrupted", reason: "crashed", ended_at_ms: row["started_at_ms"] ?? 0 };
    return this.#insert("turn", ended);
  }

  /** Two entries claim one place: the second is shown as late, behind all others, and is no model context. */
  #insertLate(row: FoundRow): boolean {
    const sessionNo = valuesOf(row, ["session_no"]);
    const last = this.#rows.get<{ seq: number }>(
      "SELECT max(seq) AS seq FROM entry WHERE session_no = ?",
      ...sessionNo,
    );
    const seq = (last?.seq ?? 0) + 1;
    const late = { ...row, seq, place: seq, late: 1 };
    if (!this.#insert("entry", late) && !this.#insert("entry", { ...late, key: `${String(row["key"])}/recovered` }))
      return false;
    this.#findings.mend(
      `session ${String(row["session_no"])}`,
      `entry ${String(row["key"])} clashed with another and stands at the end, marked late`,
    );
    return true;
  }
}

function valuesOf(row: FoundRow, names: readonly string[]): SqlValue[] {
  return names.map((name) => {
    const value = row[name] ?? null;
    return typeof value === "bigint" || Buffer.isBuffer(value) ? String(value) : value;
  });
}
