/**
 * The ids of sessions whose own row is lost. Entries and inputs know their session by number alone; the index over the
 * ids repeats both, on pages of its own.
 */
import type { Connection } from "../connection.ts";
import type { FoundValue } from "./record.ts";

/** Of the session's table; that of the leases looks the same and numbers otherwise. */
const sessionIndex = "sqlite_autoindex_session_1";

/** How reports call a session. */
export function idOf(rows: Connection, sessionNo: number): string {
  const found = rows.get<{ session_id: string }>("SELECT session_id FROM session WHERE session_no = ?", sessionNo);
  return found?.session_id ?? `number ${sessionNo}`;
}

export class SessionNames {
  readonly #rows: Connection;

  constructor(rows: Connection) {
    this.#rows = rows;
    rows.execute("CREATE TEMP TABLE session_name (session_no INTEGER, session_id TEXT, is_sure INTEGER)");
  }

  /** Whether a page of an index may tell: unless it is known to belong to another one. */
  isFor(owner: string | undefined): boolean {
    return owner === undefined || owner === sessionIndex;
  }

  /** Notes what a page of an index says. */
  note(owner: string | undefined, records: readonly (readonly FoundValue[])[]): void {
    for (const [id, number, ...rest] of records) {
      if (typeof id !== "string" || typeof number !== "number" || rest.length > 0) continue;
      this.#rows.run("INSERT INTO temp.session_name VALUES (?, ?, ?)", number, id, owner === undefined ? 0 : 1);
    }
  }

  /** The id under that number, where all that can be read agrees on one that no other session has. */
  nameOf(sessionNo: number): string | undefined {
    const found = this.#rows.all<{ session_id: string }>(
      `SELECT DISTINCT session_id FROM temp.session_name AS one
       WHERE session_no = ? AND session_id NOT IN (SELECT session_id FROM session)
         AND is_sure = (SELECT max(is_sure) FROM temp.session_name WHERE session_no = one.session_no)`,
      sessionNo,
    );
    return found.length === 1 ? found[0]?.session_id : undefined;
  }

  /** Before the names are asked for. */
  settle(): void {
    this.#rows.execute("CREATE INDEX temp.session_name_by_no ON session_name (session_no)");
  }

  forget(): void {
    this.#rows.execute("DROP TABLE temp.session_name");
  }
}
