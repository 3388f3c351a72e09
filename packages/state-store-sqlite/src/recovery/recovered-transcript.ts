import { digestOf } from "@turnkeeper/state-store";
import type { EntryBody } from "@turnkeeper/state-store";
import type { Connection } from "../connection.ts";
import type { Findings } from "./findings.ts";

/** An entry without its body: what was read of a long transcript must fit into memory. */
export interface EntryRow {
  readonly seq: number;
  readonly turn_id: string;
  readonly at_ms: number;
  readonly archived: number;
  readonly outcome: string | null;
  readonly token: number;
}

/** One session's transcript while it is made whole: where entries are lost, and what may stand in their places. */
export class RecoveredTranscript {
  readonly rows: Connection;
  readonly findings: Findings;
  /** The session, as rows and as reports name it. */
  readonly no: number;
  readonly id: string;

  constructor(
    rows: Connection,
    findings: Findings,
    session: { readonly session_no: number; readonly session_id: string },
  ) {
    this.rows = rows;
    this.findings = findings;
    this.no = session.session_no;
    this.id = session.session_id;
  }

  tell(detail: string): void {
    this.findings.mend(this.id, detail);
  }

  markLate(seq: number, why: string): void {
    this.rows.run("UPDATE entry SET late = 1 WHERE session_no = ? AND seq = ?", this.no, seq);
    this.tell(`entry ${seq} ${why}; it is marked late: shown, and no model context`);
  }

  /** The fencing token of the entry at `seq`; absent where no entry is. */
  #tokenAt(seq: number): number | undefined {
    return this.rows.get<{ token: number }>(
      "SELECT fencing_token AS token FROM entry JOIN turn USING (session_no, turn_id) WHERE session_no = ? AND seq = ?",
      this.no,
      seq,
    )?.token;
  }

  /** A free place before the entry, not beyond those of an earlier grant: tokens grow along the transcript. */
  gapBefore({ seq, token }: EntryRow, which: "nearest" | "lowest"): number | undefined {
    let at = seq - 1;
    while (at > 0 && this.#tokenAt(at) === token) at--;
    if (at <= 0 || this.#tokenAt(at) !== undefined) return undefined;
    if (which === "lowest") {
      const below = this.rows.get<{ seq: number | null }>(
        "SELECT max(seq) AS seq FROM entry WHERE session_no = ? AND seq < ?",
        this.no,
        at,
      );
      at = (below?.seq ?? 0) + 1;
    }
    return at;
  }

  gapAfter({ seq, token }: EntryRow): number | undefined {
    let at = seq + 1;
    while (this.#tokenAt(at) === token) at++;
    return this.#tokenAt(at) === undefined ? at : undefined;
  }

  /** A key that somebody used already gets a number. */
  insert(at: EntryRow, wantedKey: string, body: EntryBody): void {
    let key = wantedKey;
    for (let number = 2; this.#hasKey(key); number++) key = `${wantedKey}/${number}`;
    this.rows.run(
      `INSERT INTO entry (session_no, seq, key, turn_id, body, digest, at_ms, place, archived)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      this.no,
      at.seq,
      key,
      at.turn_id,
      JSON.stringify(body),
      digestOf(body),
      at.at_ms,
      at.seq,
      at.archived,
    );
  }

  #hasKey(key: string): boolean {
    return this.rows.get("SELECT 1 FROM entry WHERE session_no = ? AND key = ?", this.no, key) !== undefined;
  }
}
