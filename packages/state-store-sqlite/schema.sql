-- Schema version 8, as the migrations make it. A test compares them; vitest -u writes this file anew.

CREATE TABLE store (
  store_no INTEGER PRIMARY KEY CHECK (store_no = 1),
  last_input_seq INTEGER NOT NULL
) STRICT;

CREATE TABLE session (
  session_no INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL UNIQUE,
  created_at_ms REAL NOT NULL,
  updated_at_ms REAL NOT NULL,
  revision INTEGER NOT NULL,
  compaction_count INTEGER NOT NULL,
  -- Entries are never deleted alone, so this counts them too.
  last_seq INTEGER NOT NULL,
  -- Entries up to here are archived: loading a context does not read them.
  archived_through_seq INTEGER NOT NULL
, given_title TEXT, first_text TEXT, last_entry_at_ms REAL, last_role TEXT, last_tool TEXT, turn_count INTEGER NOT NULL DEFAULT 0, tool_call_count INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, compaction_health TEXT, updated_minute INTEGER NOT NULL DEFAULT 0, parent_session_id TEXT, parent_turn_id TEXT, parent_call_id TEXT, has_told_parent INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE TABLE lease (
  session_id TEXT PRIMARY KEY,
  fencing_token INTEGER NOT NULL CHECK (fencing_token > 0),
  -- NULL, with all that follows: free.
  holder_id TEXT,
  holder TEXT, -- JSON
  ttl_ms REAL,
  renew_count INTEGER,
  expires_boot_id TEXT,
  expires_boot_ms REAL,
  acquired_at_ms REAL,
  expires_at_ms REAL, predecessors TEXT,
  CHECK (
    (holder_id IS NULL) = (holder IS NULL)
    AND (holder_id IS NULL) = (ttl_ms IS NULL)
    AND (holder_id IS NULL) = (renew_count IS NULL)
    AND (holder_id IS NULL) = (expires_boot_id IS NULL)
    AND (holder_id IS NULL) = (expires_boot_ms IS NULL)
    AND (holder_id IS NULL) = (acquired_at_ms IS NULL)
    AND (holder_id IS NULL) = (expires_at_ms IS NULL)
  )
) STRICT;

CREATE TABLE turn (
  turn_no INTEGER PRIMARY KEY,
  session_no INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
  turn_id TEXT NOT NULL,
  fencing_token INTEGER NOT NULL,
  holder_id TEXT NOT NULL,
  holder TEXT NOT NULL, -- JSON
  started_at_ms REAL NOT NULL,
  stop TEXT, -- JSON
  -- NULL: it runs.
  outcome TEXT CHECK (outcome IN ('answered', 'interrupted', 'failed')),
  reason TEXT,
  detail TEXT,
  usage TEXT, -- JSON
  ended_at_ms REAL, from_seq INTEGER NOT NULL DEFAULT 1, through_seq INTEGER, suspended_at_ms REAL, approvals TEXT,
  UNIQUE (session_no, turn_id),
  CHECK ((outcome IS NULL) = (ended_at_ms IS NULL))
) STRICT;

CREATE UNIQUE INDEX turn_running ON turn (session_no) WHERE outcome IS NULL;

CREATE TABLE input (
  input_no INTEGER PRIMARY KEY,
  session_no INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
  input_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  text TEXT NOT NULL,
  digest TEXT NOT NULL,
  delivery TEXT NOT NULL CHECK (delivery IN ('turn', 'steer')),
  offered_at_ms REAL NOT NULL,
  -- NULL: an orphan, or no longer pending.
  runner_id TEXT,
  runner TEXT, -- JSON
  woken_boot_id TEXT,
  woken_boot_ms REAL,
  -- Pending while both are NULL, taken with a turn alone, settled with an end.
  turn_id TEXT,
  ended_as TEXT CHECK (ended_as IN ('answered', 'interrupted', 'failed', 'cancelled', 'expired')),
  ended_at_ms REAL, child TEXT, settings TEXT,
  UNIQUE (session_no, input_id),
  FOREIGN KEY (session_no, turn_id) REFERENCES turn (session_no, turn_id),
  CHECK ((ended_as IS NULL) = (ended_at_ms IS NULL)),
  CHECK ((runner_id IS NULL) = (runner IS NULL)),
  CHECK ((woken_boot_id IS NULL) = (woken_boot_ms IS NULL)),
  CHECK (runner_id IS NULL OR (turn_id IS NULL AND ended_as IS NULL))
) STRICT;

CREATE INDEX input_pending ON input (session_no, seq) WHERE turn_id IS NULL AND ended_as IS NULL;

CREATE INDEX input_by_turn ON input (session_no, turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE entry (
  entry_no INTEGER PRIMARY KEY,
  session_no INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  key TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  body TEXT NOT NULL, -- JSON
  digest TEXT NOT NULL,
  at_ms REAL NOT NULL,
  -- Where it stands in the context: its own seq, or for a summary the last seq of what it replaced.
  place INTEGER NOT NULL,
  archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1)),
  late INTEGER NOT NULL DEFAULT 0 CHECK (late IN (0, 1)),
  UNIQUE (session_no, seq),
  UNIQUE (session_no, key)
) STRICT;

CREATE TABLE call (
  call_no INTEGER PRIMARY KEY,
  session_no INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
  turn_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  is_open INTEGER NOT NULL CHECK (is_open IN (0, 1)),
  UNIQUE (session_no, turn_id, call_id)
) STRICT;

CREATE INDEX entry_summary ON entry (session_no, place) WHERE place <> seq AND archived = 0;

CREATE VIRTUAL TABLE entry_gram USING fts5 (
  grams,
  content = '',
  contentless_delete = 1,
  detail = none,
  tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\]^_`{|}~'"
);

CREATE TABLE 'entry_gram_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'entry_gram_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE 'entry_gram_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);

CREATE TABLE 'entry_gram_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE search_index (
  index_no INTEGER PRIMARY KEY CHECK (index_no = 1),
  through_entry_no INTEGER NOT NULL,
  is_broken INTEGER NOT NULL CHECK (is_broken IN (0, 1))
) STRICT;

CREATE TABLE search_gone (
  gone_no INTEGER PRIMARY KEY,
  session_no INTEGER NOT NULL
) STRICT;

CREATE INDEX entry_late ON entry (session_no, turn_id, seq) WHERE late = 1;

CREATE INDEX session_by_change ON session (updated_minute DESC);

CREATE INDEX session_by_parent ON session (parent_session_id, parent_turn_id) WHERE parent_session_id IS NOT NULL;
