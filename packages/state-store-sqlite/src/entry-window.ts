/** Reading a part of a transcript: what is asked for is found by an index, in its order, and nothing else is read. */
import type { LoadOptions, Transcript } from "@turnkeeper/state-store";
import { entryColumns, entryOf } from "./entry-rows.ts";
import type { EntryRow } from "./entry-rows.ts";
import { findSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import type { Transaction } from "./transaction.ts";
import { spanOf } from "./turn-rows.ts";

const noLimit = -1;

interface Window {
  readonly limit: number;
  readonly order: "ASC" | "DESC";
}

function windowOf({ limit, first }: LoadOptions): Window {
  if (limit !== undefined) return { limit: Math.max(0, limit), order: "DESC" };
  return { limit: first === undefined ? noLimit : Math.max(0, first), order: "ASC" };
}

interface PlacedRow extends EntryRow {
  readonly place: number;
}

type Column = "seq" | "place";

/** Entries of the window in the order of `column`, with their place in the context. */
function rowsBy(
  tx: Transaction,
  session: SessionRow,
  options: LoadOptions,
  choice: { readonly column: Column; readonly condition: string; readonly window: Window },
): PlacedRow[] {
  const { afterSeq = 0, beforeSeq = Number.MAX_SAFE_INTEGER, turnId } = options;
  const { limit, order } = choice.window;
  // The plus keeps SQLite from the index on seq, which would leave all that it finds to be sorted.
  const seq = choice.column === "seq" ? "seq" : "+seq";
  const rows = tx.rows.all<PlacedRow>(
    `SELECT ${entryColumns}, place FROM entry WHERE session_no = ? AND ${seq} > ? AND ${seq} < ? ${choice.condition}
       ${turnId === undefined ? "" : "AND turn_id = ?"} ORDER BY ${choice.column} ${order} LIMIT ?`,
    session.session_no,
    afterSeq,
    beforeSeq,
    ...(turnId === undefined ? [] : [turnId]),
    limit,
  );
  return order === "DESC" ? rows.toReversed() : rows;
}

/** The window of two lists together, of each of which it was read alone. */
function merged(rows: readonly PlacedRow[], column: Column, { limit, order }: Window): PlacedRow[] {
  const all = rows.toSorted((left, right) => left[column] - right[column] || left.seq - right.seq);
  if (limit === noLimit) return all;
  return order === "DESC" ? all.slice(all.length - Math.min(all.length, limit)) : all.slice(0, limit);
}

/** Narrows the window to where a turn's entries lie; those of a turn without a row may lie anywhere. */
function withinTurn(tx: Transaction, session: SessionRow, options: LoadOptions): LoadOptions {
  const { turnId, afterSeq = 0, beforeSeq = Number.MAX_SAFE_INTEGER } = options;
  const span = turnId === undefined ? undefined : spanOf(tx, session, turnId);
  if (!span) return options;
  return {
    ...options,
    afterSeq: Math.max(afterSeq, span.from_seq - 1),
    beforeSeq: span.through_seq === null ? beforeSeq : Math.min(beforeSeq, span.through_seq + 1),
  };
}

/** Everything, in the order of appending. What came late may lie far behind its turn, and has an index of its own. */
function allRows(tx: Transaction, session: SessionRow, options: LoadOptions, window: Window): PlacedRow[] {
  const within = withinTurn(tx, session, options);
  if (within === options) return rowsBy(tx, session, options, { column: "seq", condition: "", window });
  const inTime = rowsBy(tx, session, within, { column: "seq", condition: "AND late = 0", window });
  const late = rowsBy(tx, session, options, { column: "seq", condition: "AND late = 1", window });
  return late.length === 0 ? inTime : merged([...inTime, ...late], "seq", window);
}

/**
 * The context in its order: summaries stand where their basis ended, all else where it was appended. The two come by
 * indexes of their own, since to read them by place alone would sort the whole context.
 */
function contextRows(tx: Transaction, session: SessionRow, options: LoadOptions, window: Window): PlacedRow[] {
  const active = "AND archived = 0 AND late = 0";
  const within = withinTurn(tx, session, options);
  const afterSeq = Math.max(within.afterSeq ?? 0, session.archived_through_seq);
  const said = rowsBy(
    tx,
    session,
    { ...within, afterSeq },
    { column: "seq", condition: `${active} AND place = seq`, window },
  );
  if (session.compaction_count === 0) return said;
  const summaries = rowsBy(tx, session, options, { column: "place", condition: `${active} AND place <> seq`, window });
  return merged([...said, ...summaries], "place", window);
}

export function loadWindow(tx: Transaction, sessionId: string, options: LoadOptions): Transcript {
  const session = findSession(tx, sessionId);
  if (!session) return { entries: [], revision: 0, compactionCount: 0 };
  const window = windowOf(options);
  const rows = (options.all ? allRows : contextRows)(tx, session, options, window);
  return { entries: rows.map(entryOf), revision: session.revision, compactionCount: session.compaction_count };
}
