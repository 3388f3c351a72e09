/** Reading a part of a transcript: what is asked for is found by an index, in its order, and nothing else is read. */
import type { LoadOptions, Transcript } from "@turnkeeper/state-store";
import { entryColumns, entryOf } from "./entry-rows.ts";
import type { EntryRow } from "./entry-rows.ts";
import { findSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import type { Transaction } from "./transaction.ts";

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

/** Entries by `column`, with their place in the context. */
function rowsBy(
  tx: Transaction,
  session: SessionRow,
  options: LoadOptions,
  choice: { readonly column: "seq" | "place"; readonly condition: string; readonly window: Window },
): PlacedRow[] {
  const { afterSeq = 0, beforeSeq = Number.MAX_SAFE_INTEGER, turnId } = options;
  const { limit, order } = choice.window;
  // The plus keeps SQLite from the index on seq, which would leave all that it finds to be sorted.
  const seq = choice.column === "seq" ? "seq" : "+seq";
  return tx.rows.all<PlacedRow>(
    `SELECT ${entryColumns}, place FROM entry WHERE session_no = ? AND ${seq} > ? AND ${seq} < ? ${choice.condition}
       ${turnId === undefined ? "" : "AND turn_id = ?"} ORDER BY ${choice.column} ${order} LIMIT ?`,
    session.session_no,
    afterSeq,
    beforeSeq,
    ...(turnId === undefined ? [] : [turnId]),
    limit,
  );
}

/**
 * The context in its order: summaries stand where their basis ended, all else where it was appended. The two come by
 * indexes of their own, since to read them by place alone would sort the whole context.
 */
function contextRows(tx: Transaction, session: SessionRow, options: LoadOptions, window: Window): PlacedRow[] {
  const active = "AND archived = 0 AND late = 0";
  const afterSeq = Math.max(options.afterSeq ?? 0, session.archived_through_seq);
  const said = rowsBy(
    tx,
    session,
    { ...options, afterSeq },
    { column: "seq", condition: `${active} AND place = seq`, window },
  );
  if (session.compaction_count === 0) return said;
  const summaries = rowsBy(tx, session, options, { column: "place", condition: `${active} AND place <> seq`, window });
  const rows = [...said, ...summaries].toSorted((left, right) => left.place - right.place || left.seq - right.seq);
  if (window.limit === noLimit) return rows;
  return window.order === "DESC"
    ? rows.slice(rows.length - Math.min(rows.length, window.limit))
    : rows.slice(0, window.limit);
}

export function loadWindow(tx: Transaction, sessionId: string, options: LoadOptions): Transcript {
  const session = findSession(tx, sessionId);
  if (!session) return { entries: [], revision: 0, compactionCount: 0 };
  const window = windowOf(options);
  const rows = options.all
    ? rowsBy(tx, session, options, { column: "seq", condition: "", window })
    : contextRows(tx, session, options, window);
  const isReversed = window.order === "DESC" && (options.all === true || session.compaction_count === 0);
  return {
    entries: (isReversed ? rows.toReversed() : rows).map(entryOf),
    revision: session.revision,
    compactionCount: session.compaction_count,
  };
}
