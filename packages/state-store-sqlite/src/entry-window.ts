/** Reading a part of a transcript: what is asked for is found by an index, in its order, and nothing else is read. */
import type { Entry, EntryBody, LoadOptions, Transcript } from "@turnkeeper/state-store";
import { parseJson } from "./json-column.ts";
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

type Column = "seq" | "place";

/** What every entry has, and of those that may stand elsewhere, be archived or late what else there is to tell. */
type EntryValues = readonly [
  seq: number,
  key: string,
  turnId: string,
  body: string,
  digest: string,
  atMs: number,
  archived?: 0 | 1,
  late?: 0 | 1,
  place?: number,
];
const usualColumns = "seq, key, turn_id, body, digest, at_ms";
const markedColumns = `${usualColumns}, archived, late`;
const placedColumns = `${markedColumns}, place`;

/** By number, not taken apart: a context has thousands of these. */
function entryOf(values: EntryValues): Entry {
  return {
    key: values[1],
    body: parseBody(values),
    seq: values[0],
    turnId: values[2],
    digest: values[4],
    atMs: values[5],
    archived: values[6] === 1,
    late: values[7] === 1,
  };
}

function parseBody(values: EntryValues): EntryBody {
  return parseJson<EntryBody>(values[3], () => `entry.body (seq ${values[0]}, key ${values[1]})`);
}

interface Choice {
  readonly columns: string;
  readonly condition: string;
  readonly order: Column;
  readonly window: Window;
}

/** Entries of the window in the order of a column. */
function valuesBy(tx: Transaction, session: SessionRow, options: LoadOptions, choice: Choice): EntryValues[] {
  const { afterSeq = 0, beforeSeq = Number.MAX_SAFE_INTEGER, turnId } = options;
  const { limit, order } = choice.window;
  // The plus keeps SQLite from the index on seq, which would leave all that it finds to be sorted.
  const seq = choice.order === "seq" ? "seq" : "+seq";
  const rows = tx.rows.lists<EntryValues>(
    `SELECT ${choice.columns} FROM entry WHERE session_no = ? AND ${seq} > ? AND ${seq} < ? ${choice.condition}
       ${turnId === undefined ? "" : "AND turn_id = ?"} ORDER BY ${choice.order} ${order} LIMIT ?`,
    session.session_no,
    afterSeq,
    beforeSeq,
    ...(turnId === undefined ? [] : [turnId]),
    limit,
  );
  return order === "DESC" ? rows.toReversed() : rows;
}

/** The window of two lists together, of each of which it was read alone. */
function merged(lists: readonly EntryValues[], { limit, order }: Window): EntryValues[] {
  const placeOf = (values: EntryValues): number => values[8] ?? values[0];
  const all = lists.toSorted((left, right) => placeOf(left) - placeOf(right) || left[0] - right[0]);
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
function everything(tx: Transaction, session: SessionRow, options: LoadOptions, window: Window): EntryValues[] {
  const columns = markedColumns;
  const within = withinTurn(tx, session, options);
  if (within === options) return valuesBy(tx, session, options, { columns, condition: "", order: "seq", window });
  const inTime = valuesBy(tx, session, within, { columns, condition: "AND late = 0", order: "seq", window });
  const late = valuesBy(tx, session, options, { columns, condition: "AND late = 1", order: "seq", window });
  return late.length === 0 ? inTime : merged([...inTime, ...late], window);
}

/**
 * The context in its order: summaries stand where their basis ended, all else where it was appended. The two come by
 * indexes of their own, since to read them by place alone would sort the whole context.
 */
function context(tx: Transaction, session: SessionRow, options: LoadOptions, window: Window): EntryValues[] {
  const active = "AND archived = 0 AND late = 0";
  const within = withinTurn(tx, session, options);
  const said = valuesBy(
    tx,
    session,
    { ...within, afterSeq: Math.max(within.afterSeq ?? 0, session.archived_through_seq) },
    { columns: usualColumns, condition: `${active} AND place = seq`, order: "seq", window },
  );
  if (session.compaction_count === 0) return said;
  const condition = `${active} AND place <> seq`;
  const summaries = valuesBy(tx, session, options, { columns: placedColumns, condition, order: "place", window });
  return merged([...said, ...summaries], window);
}

export function loadWindow(tx: Transaction, sessionId: string, options: LoadOptions): Transcript {
  const session = findSession(tx, sessionId);
  if (!session) return { entries: [], revision: 0, compactionCount: 0 };
  const found = (options.all ? everything : context)(tx, session, options, windowOf(options));
  return { entries: found.map(entryOf), revision: session.revision, compactionCount: session.compaction_count };
}
