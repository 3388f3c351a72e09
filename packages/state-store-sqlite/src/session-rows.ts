import { titleOf } from "@turnkeeper/state-store";
import type { EntryBody, ParentCall, SessionFacts, SessionRecord } from "@turnkeeper/state-store";
import type { Transaction } from "./transaction.ts";

/** Of a session what its turns work with. */
export interface SessionRow {
  readonly session_no: number;
  readonly session_id: string;
  updated_at_ms: number;
  updated_minute: number;
  revision: number;
  compaction_count: number;
  last_seq: number;
  archived_through_seq: number;
  readonly compaction_health: string | null;
  readonly parent_session_id: string | null;
  readonly parent_turn_id: string | null;
  readonly parent_call_id: string | null;
  has_told_parent: 0 | 1;
}

const sessionColumns = `session_no, session_id, updated_at_ms, updated_minute, revision, compaction_count, last_seq,
  archived_through_seq, compaction_health, parent_session_id, parent_turn_id, parent_call_id, has_told_parent`;

/** With what a list tells of it. */
export interface ListedSessionRow extends SessionRow {
  readonly created_at_ms: number;
  readonly given_title: string | null;
  readonly first_text: string | null;
  readonly last_entry_at_ms: number | null;
  readonly last_role: EntryBody["role"] | null;
  readonly last_tool: string | null;
  readonly turn_count: number;
  readonly tool_call_count: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
}

/** Sessions are listed by change, found by the minute of it: an index on the instant itself would move with each append. */
export function minuteOf(atMs: number): number {
  return Math.floor(atMs / 60_000);
}

export function parentOf(row: SessionRow): ParentCall | undefined {
  const { parent_session_id: sessionId, parent_turn_id: turnId, parent_call_id: callId } = row;
  return sessionId === null || turnId === null || callId === null ? undefined : { sessionId, turnId, callId };
}

export function sessionRecord(row: ListedSessionRow): SessionRecord {
  const parent = parentOf(row);
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
    ...(parent ? { parent } : {}),
  };
}

export function findSession(tx: Transaction, sessionId: string): SessionRow | undefined {
  return tx.rows.get<SessionRow>(`SELECT ${sessionColumns} FROM session WHERE session_id = ?`, sessionId);
}

export function findListedSession(tx: Transaction, sessionId: string): ListedSessionRow | undefined {
  return tx.rows.get<ListedSessionRow>("SELECT * FROM session WHERE session_id = ?", sessionId);
}

/** The session; made as `parent`'s child where it is not there yet. */
export function ensureSession(tx: Transaction, sessionId: string, parent?: ParentCall): SessionRow {
  const known = findSession(tx, sessionId);
  if (known) return known;
  tx.rows.run(
    `INSERT INTO session (session_id, created_at_ms, updated_at_ms, updated_minute, revision, compaction_count, last_seq,
       archived_through_seq, parent_session_id, parent_turn_id, parent_call_id) VALUES (?, ?, ?, ?, 0, 0, 0, 0, ?, ?, ?)`,
    sessionId,
    tx.atMs,
    tx.atMs,
    minuteOf(tx.atMs),
    parent?.sessionId ?? null,
    parent?.turnId ?? null,
    parent?.callId ?? null,
  );
  return ensureSession(tx, sessionId);
}

/** The session changed now: the place in the list, which is indexed, moves once a minute and not each time. */
function changed(tx: Transaction, session: SessionRow): void {
  session.updated_at_ms = tx.atMs;
  const minute = minuteOf(tx.atMs);
  if (session.updated_minute === minute) return;
  session.updated_minute = minute;
  tx.rows.run("UPDATE session SET updated_minute = ? WHERE session_no = ?", minute, session.session_no);
}

/** Something about the session changed, though not its transcript. */
export function touchSession(tx: Transaction, session: SessionRow): void {
  if (session.updated_at_ms === tx.atMs) return;
  changed(tx, session);
  tx.rows.run("UPDATE session SET updated_at_ms = ? WHERE session_no = ?", tx.atMs, session.session_no);
}

/** The transcript grew to `lastSeq` by entries with these facts: one more revision. */
export function reviseSession(tx: Transaction, session: SessionRow, lastSeq: number, facts: SessionFacts): void {
  const { firstText, lastEntry } = facts;
  session.revision++;
  session.last_seq = lastSeq;
  changed(tx, session);
  tx.rows.run(
    `UPDATE session SET revision = ?, last_seq = ?, updated_at_ms = ?, first_text = coalesce(first_text, ?),
       last_entry_at_ms = ?, last_role = ?, last_tool = ?, tool_call_count = tool_call_count + ?,
       input_tokens = input_tokens + ?, output_tokens = output_tokens + ? WHERE session_no = ?`,
    session.revision,
    lastSeq,
    session.updated_at_ms,
    firstText ?? null,
    lastEntry?.atMs ?? null,
    lastEntry?.role ?? null,
    lastEntry?.toolName ?? null,
    facts.toolCallCount,
    facts.inputTokens,
    facts.outputTokens,
    session.session_no,
  );
}

export function countTurn(tx: Transaction, session: SessionRow): void {
  tx.rows.run("UPDATE session SET turn_count = turn_count + 1 WHERE session_no = ?", session.session_no);
}

/** Names the session; null gives it back the title of its first message. With `ifUnnamed` one that was named stays. */
export function setTitle(
  tx: Transaction,
  sessionId: string,
  title: string | null,
  ifUnnamed: boolean,
): { readonly kind: "set" | "named" | "unknown" } {
  const known = tx.rows.get<{ given_title: string | null }>(
    "SELECT given_title FROM session WHERE session_id = ?",
    sessionId,
  );
  if (!known) return { kind: "unknown" };
  if (ifUnnamed && known.given_title !== null) return { kind: "named" };
  tx.rows.run(
    "UPDATE session SET given_title = ?, updated_at_ms = ?, updated_minute = ? WHERE session_id = ?",
    title,
    tx.atMs,
    minuteOf(tx.atMs),
    sessionId,
  );
  return { kind: "set" };
}
