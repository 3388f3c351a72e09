/** What a session's rows hold beside its entries, inputs and turns, and could be made anew from them. */
import { callsOf, joinFacts, sessionFactsOf } from "@turnkeeper/state-store";
import type { EntryBody, SessionFacts } from "@turnkeeper/state-store";
import type { SqlValue } from "./connection.ts";
import { minuteOf } from "./session-rows.ts";
import type { ListedSessionRow, SessionRow } from "./session-rows.ts";
import type { Transaction } from "./transaction.ts";
import { spanOf } from "./turn-rows.ts";

/** What contradicts the rows it is derived from, and how to derive it anew. */
export interface DerivedFault {
  readonly detail: string;
  mend(tx: Transaction): void;
}

interface DerivingRow {
  readonly seq: number;
  readonly turn_id: string;
  readonly body: string;
  readonly at_ms: number;
  readonly place: number;
  readonly archived: number;
  readonly late: number;
}

interface CallRow {
  readonly turn_id: string;
  readonly call_id: string;
  readonly name: string;
  readonly is_open: number;
}

/** What the entries say, read one by one: none is kept. */
interface Derivation {
  readonly facts: SessionFacts;
  readonly lastSeq: number;
  /** The first that is model context where it was appended; all before it need not be read for a context. */
  readonly firstActiveSeq: number;
  readonly placedCount: number;
  readonly calls: readonly CallRow[];
  readonly spans: ReadonlyMap<string, Span>;
}

/** Between which entries those of a turn lie, but for those that came late. */
interface Span {
  readonly fromSeq: number;
  readonly throughSeq: number;
}

/** Absent where a body cannot be read: nothing is derived from damage. */
function derive(tx: Transaction, session: SessionRow, runningTurnId: string | undefined): Derivation | undefined {
  let facts = sessionFactsOf([]);
  let lastSeq = 0;
  let firstActiveSeq = Number.MAX_SAFE_INTEGER;
  let placedCount = 0;
  const calls = new Map<string, CallRow>();
  const spans = new Map<string, Span>();
  for (const row of tx.rows.iterate<DerivingRow>(
    "SELECT seq, turn_id, body, at_ms, place, archived, late FROM entry WHERE session_no = ? ORDER BY seq",
    session.session_no,
  )) {
    const body = readBody(row.body);
    if (!body) return undefined;
    facts = joinFacts(facts, sessionFactsOf([{ body, atMs: row.at_ms }]));
    lastSeq = row.seq;
    const isPlaced = row.place !== row.seq;
    if (isPlaced) placedCount++;
    else if (row.archived === 0 && row.late === 0) firstActiveSeq = Math.min(firstActiveSeq, row.seq);
    if (row.late === 1) continue;
    spans.set(row.turn_id, { fromSeq: spans.get(row.turn_id)?.fromSeq ?? row.seq, throughSeq: row.seq });
    if (row.turn_id !== runningTurnId) continue;
    for (const { callId, name } of callsOf(body))
      calls.set(callId, { turn_id: row.turn_id, call_id: callId, name, is_open: 1 });
    const answered = body.role === "tool" ? calls.get(body.callId) : undefined;
    if (answered) calls.set(answered.call_id, { ...answered, is_open: 0 });
  }
  return { facts, lastSeq, firstActiveSeq, placedCount, calls: [...calls.values()], spans };
}

function readBody(text: string): EntryBody | undefined {
  try {
    return JSON.parse(text) as EntryBody;
  } catch {
    return undefined;
  }
}

/** The columns of the session's row as they should be. */
function derivedColumns(
  tx: Transaction,
  session: ListedSessionRow,
  { facts, lastSeq, firstActiveSeq, placedCount }: Derivation,
): Partial<Record<keyof ListedSessionRow, SqlValue>> {
  const { firstText, lastEntry, toolCallCount, inputTokens, outputTokens } = facts;
  const turns = tx.rows.get<{ count: number }>(
    "SELECT count(*) AS count FROM turn WHERE session_no = ?",
    session.session_no,
  );
  return {
    // Numbers that were given out never come round again, so these two may be higher than what is there.
    last_seq: Math.max(session.last_seq, lastSeq),
    compaction_count: Math.max(session.compaction_count, placedCount),
    archived_through_seq: Math.min(session.archived_through_seq, firstActiveSeq - 1),
    updated_minute: minuteOf(session.updated_at_ms),
    first_text: firstText ?? null,
    last_entry_at_ms: lastEntry?.atMs ?? null,
    last_role: lastEntry?.role ?? null,
    last_tool: lastEntry?.toolName ?? null,
    turn_count: turns?.count ?? 0,
    tool_call_count: toolCallCount,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
  };
}

function columnFaults(session: ListedSessionRow, columns: Partial<Record<string, SqlValue>>): DerivedFault[] {
  const stored = new Map<string, unknown>(Object.entries(session));
  return Object.entries(columns).flatMap(([column, value = null]): DerivedFault[] => {
    if (stored.get(column) === value) return [];
    const detail = `the session's row has ${column} ${JSON.stringify(stored.get(column))}, and its entries say ${JSON.stringify(value)}`;
    const mend = (tx: Transaction): void =>
      void tx.rows.run(`UPDATE session SET ${column} = ? WHERE session_no = ?`, value, session.session_no);
    return [{ detail, mend }];
  });
}

/** The open and answered calls of the turn that runs; of one that ended there are none. */
function callFaults(tx: Transaction, session: SessionRow, calls: readonly CallRow[]): DerivedFault[] {
  const no = session.session_no;
  const stored = tx.rows.all<CallRow>(
    "SELECT turn_id, call_id, name, is_open FROM call WHERE session_no = ? ORDER BY call_no",
    no,
  );
  const told = (rows: readonly CallRow[]): string =>
    rows.map((row) => `${row.call_id} of turn ${row.turn_id}${row.is_open === 1 ? "" : " (answered)"}`).join(", ");
  const [has, wanted] = [told(stored), told(calls)];
  if (has === wanted) return [];
  const mend = (writing: Transaction): void => {
    writing.rows.run("DELETE FROM call WHERE session_no = ?", no);
    for (const { turn_id, call_id, name, is_open } of calls)
      writing.rows.run(
        "INSERT INTO call (session_no, turn_id, call_id, name, is_open) VALUES (?, ?, ?, ?, ?)",
        no,
        turn_id,
        call_id,
        name,
        is_open,
      );
  };
  const detail = `the calls that are kept for the turn that runs are [${has}], and its entries say [${wanted}]`;
  return [{ detail, mend }];
}

/** Turns some of whose entries would not be found where their row says that they lie. */
function spanFaults(tx: Transaction, session: SessionRow, spans: ReadonlyMap<string, Span>): DerivedFault[] {
  return [...spans].flatMap(([turnId, { fromSeq, throughSeq }]): DerivedFault[] => {
    const stored = spanOf(tx, session, turnId);
    if (!stored || (stored.from_seq <= fromSeq && (stored.through_seq ?? throughSeq) >= throughSeq)) return [];
    const told = `entries ${stored.from_seq} to ${stored.through_seq ?? "the last"}`;
    return [
      {
        detail: `the row of turn ${turnId} says that it has ${told}, and it has entries ${fromSeq} to ${throughSeq}`,
        mend: (writing) =>
          void writing.rows.run(
            `UPDATE turn SET from_seq = min(from_seq, ?), through_seq = max(through_seq, ?)
             WHERE session_no = ? AND turn_id = ?`,
            fromSeq,
            throughSeq,
            session.session_no,
            turnId,
          ),
      },
    ];
  });
}

/** Everything derived of the session that its other rows contradict. */
export function derivedFaults(tx: Transaction, session: ListedSessionRow): readonly DerivedFault[] {
  const running = tx.rows.get<{ turn_id: string }>(
    "SELECT turn_id FROM turn WHERE session_no = ? AND outcome IS NULL",
    session.session_no,
  );
  const derivation = derive(tx, session, running?.turn_id);
  if (!derivation) return [];
  return [
    ...columnFaults(session, derivedColumns(tx, session, derivation)),
    ...callFaults(tx, session, derivation.calls),
    ...spanFaults(tx, session, derivation.spans),
  ];
}

/** The number by which the store's queue goes on. */
export function queueFaults(tx: Transaction): readonly DerivedFault[] {
  const row = tx.rows.get<{ last: number | null; high: number }>(
    "SELECT (SELECT last_input_seq FROM store) AS last, coalesce((SELECT max(seq) FROM input), 0) AS high",
  );
  const { last = null, high = 0 } = row ?? {};
  if (last !== null && last >= high) return [];
  const detail = `the store's row has last_input_seq ${last}, and its inputs say ${high}`;
  const mend = (writing: Transaction): void =>
    void writing.rows.run(
      `INSERT INTO store (store_no, last_input_seq) VALUES (1, ?)
       ON CONFLICT (store_no) DO UPDATE SET last_input_seq = excluded.last_input_seq`,
      high,
    );
  return [{ detail, mend }];
}
