-- Search, titles, and what a list of sessions tells of each. All of it but a given title is derived from the entries.

-- What the session was named; NULL: its title is that of its first message.
ALTER TABLE session ADD COLUMN given_title TEXT;
-- The first 200 characters of its first user entry.
ALTER TABLE session ADD COLUMN first_text TEXT;
-- NULL: no entry yet.
ALTER TABLE session ADD COLUMN last_entry_at_ms REAL;
ALTER TABLE session ADD COLUMN last_role TEXT;
ALTER TABLE session ADD COLUMN last_tool TEXT;
ALTER TABLE session ADD COLUMN turn_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN tool_call_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;

-- A body that rotted must not keep the store from being opened, so every look into one asks first whether it is JSON.
UPDATE session SET
  turn_count = (SELECT count(*) FROM turn WHERE turn.session_no = session.session_no),
  first_text = (
    SELECT substr(body ->> '$.text', 1, 200) FROM entry
    WHERE entry.session_no = session.session_no
      AND CASE WHEN json_valid(body) THEN body ->> '$.role' = 'user' END
    ORDER BY seq LIMIT 1
  ),
  last_entry_at_ms = (
    SELECT at_ms FROM entry WHERE entry.session_no = session.session_no ORDER BY seq DESC LIMIT 1
  ),
  last_role = (
    SELECT CASE WHEN json_valid(body) THEN body ->> '$.role' END FROM entry
    WHERE entry.session_no = session.session_no ORDER BY seq DESC LIMIT 1
  ),
  last_tool = (
    SELECT CASE
      WHEN NOT json_valid(body) THEN NULL
      WHEN body ->> '$.role' = 'tool' THEN body ->> '$.name'
      WHEN body ->> '$.role' = 'assistant' THEN (
        SELECT part.value ->> '$.name' FROM json_each(body, '$.parts') AS part
        WHERE part.value ->> '$.type' = 'tool-call' ORDER BY part.key DESC LIMIT 1
      )
    END FROM entry
    WHERE entry.session_no = session.session_no ORDER BY seq DESC LIMIT 1
  );

UPDATE session SET
  tool_call_count = summed.calls,
  input_tokens = summed.input_tokens,
  output_tokens = summed.output_tokens
FROM (
  SELECT
    session_no,
    sum((SELECT count(*) FROM json_each(body, '$.parts') AS part WHERE part.value ->> '$.type' = 'tool-call')) AS calls,
    sum(CASE json_type(body, '$.usage.inputTokens') WHEN 'integer' THEN max(0, body ->> '$.usage.inputTokens') ELSE 0 END) AS input_tokens,
    sum(CASE json_type(body, '$.usage.outputTokens') WHEN 'integer' THEN max(0, body ->> '$.usage.outputTokens') ELSE 0 END) AS output_tokens
  FROM (
    SELECT session_no, CASE WHEN json_valid(body) THEN body ELSE '{}' END AS body FROM entry
  )
  WHERE body ->> '$.role' = 'assistant'
  GROUP BY session_no
) AS summed
WHERE summed.session_no = session.session_no;

-- A page of sessions is read, not all of them sorted.
CREATE INDEX session_by_change ON session (updated_at_ms DESC, session_id);

-- A turn's entries are found without the rest of its session.
CREATE INDEX entry_by_turn ON entry (session_no, turn_id, seq);

-- The few entries that stand elsewhere than they were appended.
CREATE INDEX entry_summary ON entry (session_no, place) WHERE place <> seq AND archived = 0;

-- The search index: for each entry, by its entry_no, the groups of up to three characters in its folded text. Without
-- the text itself and without positions it is a filter: what it finds is looked up and compared. Searches fill it.
CREATE VIRTUAL TABLE entry_gram USING fts5 (
  grams,
  content = '',
  contentless_delete = 1,
  detail = none,
  tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\]^_`{|}~'"
);

-- One row. Entries up to through_entry_no are in the index; a broken index is left alone until it is made anew.
CREATE TABLE search_index (
  index_no INTEGER PRIMARY KEY CHECK (index_no = 1),
  through_entry_no INTEGER NOT NULL,
  is_broken INTEGER NOT NULL CHECK (is_broken IN (0, 1))
) STRICT;

INSERT INTO search_index (index_no, through_entry_no, is_broken) VALUES (1, 0, 0);

-- Sessions that were deleted and whose entries are still in the index.
CREATE TABLE search_gone (
  gone_no INTEGER PRIMARY KEY,
  session_no INTEGER NOT NULL
) STRICT;
