import { sessionFactsOf, titleOf } from "@turnkeeper/state-store";
import type { Entry, InputRecord, SessionRecords, TurnRecord } from "@turnkeeper/state-store";
import { toJson } from "./json-column.ts";
import { findLease, isHeld } from "./lease-rows.ts";
import { findListedSession, minuteOf } from "./session-rows.ts";
import type { ListedSessionRow } from "./session-rows.ts";
import { storeError } from "./store-failure.ts";
import type { Transaction } from "./transaction.ts";

/** Up to where a context need not be read: whatever stands there is archived, or a summary in the place of others. */
function archivedThrough({ entries, summaries }: SessionRecords): number {
  const placed = new Map(summaries.map(({ seq, throughSeq }) => [seq, throughSeq]));
  const firstActive = entries.find((entry) => !entry.archived && !placed.has(entry.seq));
  const wanted = Math.max(0, ...placed.values());
  return firstActive ? Math.min(wanted, firstActive.seq - 1) : wanted;
}

function insertSession(tx: Transaction, records: SessionRecords): ListedSessionRow {
  const { session, entries, compactionCount } = records;
  const { firstText = "", lastEntry } = sessionFactsOf(entries);
  const isGiven = session.title !== undefined && session.title !== titleOf(firstText);
  const { turnCount, toolCallCount, inputTokens, outputTokens } = session.totals;
  tx.rows.run(
    `INSERT INTO session (session_id, created_at_ms, updated_at_ms, updated_minute, revision, compaction_count,
       last_seq, archived_through_seq, given_title, first_text, last_entry_at_ms, last_role, last_tool, turn_count,
       tool_call_count, input_tokens, output_tokens, parent_session_id, parent_turn_id, parent_call_id, has_told_parent)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)`,
    session.sessionId,
    session.createdAtMs,
    session.updatedAtMs,
    minuteOf(session.updatedAtMs),
    session.revision,
    compactionCount,
    session.entryCount,
    archivedThrough(records),
    isGiven ? (session.title ?? null) : null,
    firstText === "" ? null : firstText,
    lastEntry?.atMs ?? null,
    lastEntry?.role ?? null,
    lastEntry?.toolName ?? null,
    turnCount,
    toolCallCount,
    inputTokens,
    outputTokens,
    session.parent?.sessionId ?? null,
    session.parent?.turnId ?? null,
    session.parent?.callId ?? null,
  );
  const row = findListedSession(tx, session.sessionId);
  if (!row) throw storeError("STORE_CORRUPT", `Session ${session.sessionId} was stored and is not there.`);
  return row;
}

interface Span {
  readonly fromSeq: number;
  readonly throughSeq: number;
}

/** Where each turn's entries lie in the session, but for those that came late. */
function spansOf(entries: readonly Entry[]): ReadonlyMap<string, Span> {
  const all = new Map<string, Span>();
  for (const { turnId, seq, late } of entries)
    if (!late) all.set(turnId, { fromSeq: all.get(turnId)?.fromSeq ?? seq, throughSeq: seq });
  return all;
}

const nowhere: Span = { fromSeq: 1, throughSeq: 0 };

function insertTurn(tx: Transaction, sessionNo: number, turn: TurnRecord, span: Span): void {
  const end = turn.state === "ended" ? turn : undefined;
  tx.rows.run(
    `INSERT INTO turn (session_no, turn_id, fencing_token, holder_id, holder, started_at_ms, stop, outcome, reason,
       detail, usage, ended_at_ms, from_seq, through_seq, approvals)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    sessionNo,
    turn.turnId,
    turn.fencingToken,
    turn.holder.holderId,
    JSON.stringify(turn.holder),
    turn.startedAtMs,
    toJson(end?.stop),
    end?.outcome ?? null,
    end?.reason ?? null,
    end?.detail ?? null,
    toJson(end?.usage),
    end?.endedAtMs ?? null,
    span.fromSeq,
    end ? span.throughSeq : null,
    toJson(turn.approvals),
  );
}

function insertInput(tx: Transaction, sessionNo: number, input: InputRecord): void {
  const settled = input.state === "settled" ? input : undefined;
  tx.rows.run(
    `INSERT INTO input (session_no, input_id, seq, text, digest, delivery, offered_at_ms, turn_id, ended_as, ended_at_ms,
       child, settings) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    sessionNo,
    input.inputId,
    input.seq,
    input.text,
    input.digest,
    input.delivery,
    input.offeredAtMs,
    input.state === "pending" ? null : (input.turnId ?? null),
    settled?.end ?? null,
    settled?.endedAtMs ?? null,
    toJson(input.child),
    toJson(input.settings),
  );
}

/** The token of a session that is not there may have been granted here before; it never falls (LEASE-2). */
function raiseToken(tx: Transaction, sessionId: string, fencingToken: number): void {
  const row = findLease(tx, sessionId);
  // A late write of an expired holder must find its grant gone, so the token rises as with a deletion.
  const token = Math.max(fencingToken, row ? row.fencing_token + (isHeld(row) ? 1 : 0) : 0);
  if (token === 0) return;
  tx.rows.run(
    `INSERT INTO lease (session_id, fencing_token) VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET
       fencing_token = excluded.fencing_token, holder_id = NULL, holder = NULL, ttl_ms = NULL, renew_count = NULL,
       expires_boot_id = NULL, expires_boot_ms = NULL, acquired_at_ms = NULL, expires_at_ms = NULL`,
    sessionId,
    token,
  );
}

/** Makes a session of records that `importOf` answered and that is not there yet. */
export function insertImported(tx: Transaction, records: SessionRecords): ListedSessionRow {
  const { session, inputs, turns, entries, summaries } = records;
  const row = insertSession(tx, records);
  const spanOf = spansOf(entries);
  for (const turn of turns) insertTurn(tx, row.session_no, turn, spanOf.get(turn.turnId) ?? nowhere);
  for (const input of inputs) insertInput(tx, row.session_no, input);
  const lastSeq = inputs.at(-1)?.seq ?? 0;
  tx.rows.run("UPDATE store SET last_input_seq = max(last_input_seq, ?)", lastSeq);
  const places = new Map(summaries.map(({ seq, throughSeq }) => [seq, throughSeq]));
  for (const entry of entries)
    tx.rows.run(
      `INSERT INTO entry (session_no, seq, key, turn_id, body, digest, at_ms, place, archived, late)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      row.session_no,
      entry.seq,
      entry.key,
      entry.turnId,
      JSON.stringify(entry.body),
      entry.digest,
      entry.atMs,
      places.get(entry.seq) ?? entry.seq,
      entry.archived ? 1 : 0,
      entry.late ? 1 : 0,
    );
  raiseToken(tx, session.sessionId, records.fencingToken);
  return row;
}
