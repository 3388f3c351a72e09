/** Reading a part of a transcript: one statement, so what it answers is of one moment. */
import type { LoadOptions, Transcript } from "@turnkeeper/state-store";
import { entryOf } from "./entry-rows.ts";
import type { EntryRow } from "./entry-rows.ts";
import type { Server } from "./server.ts";

interface WindowRow {
  readonly revision: number;
  readonly compaction_count: number;
  readonly entries: readonly EntryRow[] | null;
}

/**
 * Which entries, as conditions on `entry` beside a row of `session`: $2 and $3 bound the seq, $4 names a turn. A turn's
 * entries are found by the two between which they lie, but for those that came late.
 */
const within = `entry.session_no = session.session_no AND entry.seq > $2 AND entry.seq < $3
  AND ($4::text IS NULL OR (entry.turn_id = $4 AND (entry.late OR entry.seq BETWEEN
    coalesce((SELECT from_seq FROM SCHEMA.turn WHERE turn.session_no = session.session_no AND turn.turn_id = $4), 0) AND
    coalesce((SELECT through_seq FROM SCHEMA.turn WHERE turn.session_no = session.session_no AND turn.turn_id = $4),
      9007199254740991))))`;

/**
 * Everything in the order of appending; or the context in its order: what was said behind the last archived entry, and
 * the summaries, which stand where their basis ended.
 */
const everything = `SELECT * FROM SCHEMA.entry WHERE ${within}`;
const context = `SELECT * FROM SCHEMA.entry
    WHERE ${within} AND seq > session.archived_through_seq AND place = seq AND NOT archived AND NOT late
  UNION ALL SELECT * FROM SCHEMA.entry WHERE ${within} AND place <> seq AND NOT archived AND NOT late`;

function windowQuery(schema: string, { all = false, limit, first }: LoadOptions): string {
  const [place, order] = [all ? "seq" : "place", limit === undefined ? "ASC" : "DESC"];
  const size = limit === undefined && first === undefined ? "" : "LIMIT $5";
  return `SELECT revision, compaction_count, (
      SELECT json_agg(json_build_object('seq', seq, 'key', key, 'turn_id', turn_id, 'body', body, 'digest', digest,
        'at_ms', at_ms, 'archived', archived, 'late', late) ORDER BY ${place}, seq)
      FROM (
        SELECT * FROM (${all ? everything : context}) AS found ORDER BY ${place} ${order}, seq ${order} ${size}
      ) AS shown
    ) AS entries
    FROM SCHEMA.session WHERE session_id = $1`.replaceAll("SCHEMA", schema);
}

export async function loadWindow(server: Server, sessionId: string, options: LoadOptions): Promise<Transcript> {
  const { afterSeq = 0, beforeSeq = Number.MAX_SAFE_INTEGER, turnId = null, limit, first } = options;
  const size = limit ?? first;
  const bounds = [afterSeq, beforeSeq].map((seq) => Math.max(-1, Math.min(Number.MAX_SAFE_INTEGER, seq)));
  const [row] = await server.read<{ readonly window: WindowRow }>(
    `load session ${sessionId}`,
    `SELECT row_to_json(found) AS window FROM (${windowQuery(server.schema, options)}) AS found`,
    [sessionId, ...bounds, turnId, ...(size === undefined ? [] : [Math.max(0, size)])],
  );
  if (!row) return { entries: [], revision: 0, compactionCount: 0 };
  const { revision, compaction_count, entries } = row.window;
  return { entries: (entries ?? []).map(entryOf), revision, compactionCount: compaction_count };
}
