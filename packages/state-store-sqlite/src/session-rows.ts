import type { SessionRecord } from "@turnkeeper/state-store";
import type { Transaction } from "./transaction.ts";

export interface SessionRow {
  readonly session_no: number;
  readonly session_id: string;
  readonly created_at_ms: number;
  updated_at_ms: number;
  revision: number;
  compaction_count: number;
  last_seq: number;
  archived_through_seq: number;
}

export function sessionRecord(row: SessionRow): SessionRecord {
  return {
    sessionId: row.session_id,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    revision: row.revision,
    entryCount: row.last_seq,
  };
}

export function findSession(tx: Transaction, sessionId: string): SessionRow | undefined {
  return tx.rows.get<SessionRow>("SELECT * FROM session WHERE session_id = ?", sessionId);
}

export function ensureSession(tx: Transaction, sessionId: string): SessionRow {
  const known = findSession(tx, sessionId);
  if (known) return known;
  tx.rows.run(
    `INSERT INTO session (session_id, created_at_ms, updated_at_ms, revision, compaction_count, last_seq, archived_through_seq)
     VALUES (?, ?, ?, 0, 0, 0, 0)`,
    sessionId,
    tx.atMs,
    tx.atMs,
  );
  return ensureSession(tx, sessionId);
}

/** Something about the session changed, though not its transcript. */
export function touchSession(tx: Transaction, session: SessionRow): void {
  if (session.updated_at_ms === tx.atMs) return;
  session.updated_at_ms = tx.atMs;
  tx.rows.run("UPDATE session SET updated_at_ms = ? WHERE session_no = ?", tx.atMs, session.session_no);
}

/** The transcript grew to `lastSeq`: one more revision. */
export function reviseSession(tx: Transaction, session: SessionRow, lastSeq: number): void {
  session.revision++;
  session.last_seq = lastSeq;
  session.updated_at_ms = tx.atMs;
  tx.rows.run(
    "UPDATE session SET revision = ?, last_seq = ?, updated_at_ms = ? WHERE session_no = ?",
    session.revision,
    lastSeq,
    tx.atMs,
    session.session_no,
  );
}
