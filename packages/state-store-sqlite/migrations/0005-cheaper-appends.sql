-- An append writes what it must: each index that it changes is a page more to write and to sync.

-- A turn's entries lie between these two in its session, but for those that came late. NULL: it runs.
ALTER TABLE turn ADD COLUMN from_seq INTEGER NOT NULL DEFAULT 1;
ALTER TABLE turn ADD COLUMN through_seq INTEGER;

UPDATE turn SET through_seq = 0 WHERE outcome IS NOT NULL;

UPDATE turn SET
  from_seq = span.from_seq,
  through_seq = CASE WHEN outcome IS NOT NULL THEN span.through_seq END
FROM (
  SELECT session_no, turn_id, min(seq) AS from_seq, max(seq) AS through_seq FROM entry WHERE late = 0
  GROUP BY session_no, turn_id
) AS span
WHERE span.session_no = turn.session_no AND span.turn_id = turn.turn_id;

DROP INDEX entry_by_turn;

-- Those that came late are few.
CREATE INDEX entry_late ON entry (session_no, turn_id, seq) WHERE late = 1;

-- updated_at_ms in whole minutes. The list of sessions is in its order: a page reads no more than the minutes it shows.
ALTER TABLE session ADD COLUMN updated_minute INTEGER NOT NULL DEFAULT 0;

UPDATE session SET updated_minute = CAST(updated_at_ms / 60000 AS INTEGER);

DROP INDEX session_by_change;

CREATE INDEX session_by_change ON session (updated_minute DESC);
