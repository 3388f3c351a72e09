import { callsOf, digestOf } from "@turnkeeper/state-store";
import type { EntryDraft } from "@turnkeeper/state-store";
import Database from "better-sqlite3";

/** Longer than any stop of a process that has the lock. */
const busyMs = 20_000;

/** Appends as a store would that does not know of fencing tokens: rightly in all else. For the control runs alone. */
export class UnfencedWriter {
  readonly #database: Database.Database;

  constructor(path: string) {
    this.#database = new Database(path, { fileMustExist: true, timeout: busyMs });
  }

  append(sessionId: string, turnId: string, draft: EntryDraft): void {
    this.#database.transaction(() => this.#insert(sessionId, turnId, draft)).immediate();
  }

  #insert(sessionId: string, turnId: string, { key, body }: EntryDraft): void {
    const session = this.#database
      .prepare<[string], { session_no: number; last_seq: number }>(
        "UPDATE session SET last_seq = last_seq + 1, revision = revision + 1 WHERE session_id = ? RETURNING session_no, last_seq",
      )
      .get(sessionId);
    if (!session) throw new Error(`There is no session ${sessionId}.`);
    const { session_no: sessionNo, last_seq: seq } = session;
    this.#database
      .prepare(
        "INSERT INTO entry (session_no, seq, key, turn_id, body, digest, at_ms, place) VALUES (?, ?, ?, ?, ?, ?, 0, ?)",
      )
      .run(sessionNo, seq, key, turnId, JSON.stringify(body), digestOf(body), seq);
    for (const { callId, name } of callsOf(body))
      this.#database
        .prepare("INSERT INTO call (session_no, turn_id, call_id, name, is_open) VALUES (?, ?, ?, ?, 1)")
        .run(sessionNo, turnId, callId, name);
    if (body.role === "tool")
      this.#database
        .prepare("UPDATE call SET is_open = 0 WHERE session_no = ? AND turn_id = ? AND call_id = ?")
        .run(sessionNo, turnId, body.callId);
  }

  close(): void {
    this.#database.close();
  }
}
