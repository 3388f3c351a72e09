import { titleOf } from "@turnkeeper/state-store";
import type { EntryBody, SessionFacts, SessionRecord } from "@turnkeeper/state-store";
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
  readonly given_title: string | null;
  first_text: string | null;
  last_entry_at_ms: number | null;
  last_role: EntryBody["role"] | null;
  last_tool: string | null;
  readonly turn_count: number;
  tool_call_count: number;
  input_tokens: number;
  output_tokens: number;
  readonly compaction_health: string | null;
}

export function sessionRecord(row: SessionRow): SessionRecord {
  const title = titleOf(row.given_title ?? row.first_text ?? "");
  const lastEntry =
    row.last_entry_at_ms === null || row.last_role === null
      ? undefined
      : {
          atMs: row.last_entry_at_ms,
          role: row.last_role,
          ...(row.last_tool === null ? {} : { toolName: row.last_tool }),
        };
  return {
    sessionId: row.session_id,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    revision: row.revision,
    entryCount: row.last_seq,
    ...(title === "" ? {} : { title }),
    ...(lastEntry ? { lastEntry } : {}),
    totals: {
      turnCount: row.turn_count,
      toolCallCount: row.tool_call_count,
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
    },
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

/** The transcript grew to `lastSeq` by entries with these facts: one more revision. */
export function reviseSession(tx: Transaction, session: SessionRow, lastSeq: number, facts: SessionFacts): void {
  session.revision++;
  session.last_seq = lastSeq;
  session.updated_at_ms = tx.atMs;
  session.first_text ??= facts.firstText ?? null;
  session.last_entry_at_ms = facts.lastEntry?.atMs ?? session.last_entry_at_ms;
  session.last_role = facts.lastEntry?.role ?? session.last_role;
  session.last_tool = facts.lastEntry?.toolName ?? null;
  session.tool_call_count += facts.toolCallCount;
  session.input_tokens += facts.inputTokens;
  session.output_tokens += facts.outputTokens;
  tx.rows.run(
    `UPDATE session SET revision = ?, last_seq = ?, updated_at_ms = ?, first_text = ?, last_entry_at_ms = ?, last_role = ?,
       last_tool = ?, tool_call_count = ?, input_tokens = ?, output_tokens = ? WHERE session_no = ?`,
    session.revision,
    lastSeq,
    session.updated_at_ms,
    session.first_text,
    session.last_entry_at_ms,
    session.last_role,
    session.last_tool,
    session.tool_call_count,
    session.input_tokens,
    session.output_tokens,
    session.session_no,
  );
}

export function countTurn(tx: Transaction, session: SessionRow): void {
  tx.rows.run("UPDATE session SET turn_count = turn_count + 1 WHERE session_no = ?", session.session_no);
}

/** Names the session; null gives it back the title of its first message. Answers whether it is there. */
export function setTitle(tx: Transaction, sessionId: string, title: string | null): boolean {
  return (
    tx.rows.run(
      "UPDATE session SET given_title = ?, updated_at_ms = ? WHERE session_id = ?",
      title,
      tx.atMs,
      sessionId,
    ) === 1
  );
}
