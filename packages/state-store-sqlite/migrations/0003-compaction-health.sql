-- How a session's summaries have fared; NULL: nothing has failed since the last that was applied.
ALTER TABLE session ADD COLUMN compaction_health TEXT; -- JSON
