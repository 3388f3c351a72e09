import type pg from "pg";

/**
 * Fills an empty schema with so many sessions at rest, by SQL: each of one turn, with one input and three entries of some
 * 700 bytes. They are named `filled-1` and so on.
 */
export async function fillStore(admin: pg.Client, schema: string, sessionCount: number): Promise<void> {
  const body = `'{"role":"assistant","parts":[{"type":"text","text":"' || repeat('lorem ipsum ', 55) || '"}]}'`;
  const of = (columns: string, values: string, from = ""): string =>
    `(${columns}) SELECT ${values} FROM generate_series(1, ${sessionCount}) AS n ${from}`;
  const at = "1760000000000 + n * 1000";
  await admin.query(`
    SET search_path = "${schema}";
    SET synchronous_commit = off;
    INSERT INTO lease ${of(
      "session_id, version, receipts, fencing_token",
      "'filled-' || n, 6, ARRAY(SELECT '01K0000000000000000000000' || r || '.1' FROM generate_series(1, 6) AS r), 1",
    )};
    INSERT INTO session ${of(
      `session_id, created_at_ms, updated_at_ms, updated_minute, revision, compaction_count, last_seq,
       archived_through_seq, first_title, last_entry_at_ms, last_role, turn_count, tool_call_count, input_tokens,
       output_tokens, has_told_parent`,
      `'filled-' || n, ${at}, ${at}, floor((${at}) / 60000), 4, 0, 3, 0, 'Good morning', ${at}, 'assistant', 1, 0, 900, 300,
       true`,
    )};
    INSERT INTO turn (session_no, turn_id, fencing_token, holder_id, holder, started_at_ms, outcome, ended_at_ms, from_seq,
      through_seq)
    SELECT session_no, 'turn-' || session_no, 1, 'holder-' || session_no, '{"holderId":"h","pid":1,"host":"alpha"}',
      created_at_ms, 'answered', created_at_ms, 1, 3 FROM session WHERE session_id LIKE 'filled-%';
    INSERT INTO input (session_no, input_id, seq, text, digest, delivery, offered_at_ms, turn_id, ended_as, ended_at_ms)
    SELECT session_no, 'input-' || session_no, nextval('input_seq'), '"Good morning"', repeat('d', 43), 'turn',
      created_at_ms, 'turn-' || session_no, 'answered', created_at_ms FROM session WHERE session_id LIKE 'filled-%';
    INSERT INTO entry (session_no, seq, key, turn_id, body, digest, at_ms, place, folded)
    SELECT session_no, seq, 'turn-' || session_no || '/' || seq, 'turn-' || session_no, ${body}, repeat('d', 43),
      created_at_ms, seq, repeat('lorem ipsum ', 55)
    FROM session, generate_series(1, 3) AS seq WHERE session_id LIKE 'filled-%';
    RESET synchronous_commit`);
  // As autovacuum leaves them, soon after.
  await admin.query("VACUUM ANALYZE");
}

export interface TableScans {
  readonly table: string;
  /** Scans that read a table from its beginning to its end. */
  readonly wholeCount: number;
  readonly indexedCount: number;
}

/** How the tables of a schema were read so far, by connections that have ended. */
export async function scansOf(admin: pg.Client, schema: string): Promise<readonly TableScans[]> {
  const { rows } = await admin.query<{ table: string; whole: number; indexed: number }>({
    text: `SELECT relname AS table, seq_scan::integer AS whole, coalesce(idx_scan, 0)::integer AS indexed
      FROM pg_stat_user_tables WHERE schemaname = $1 ORDER BY relname`,
    values: [schema],
  });
  return rows.map(({ table, whole, indexed }) => ({ table, wholeCount: whole, indexedCount: indexed }));
}
