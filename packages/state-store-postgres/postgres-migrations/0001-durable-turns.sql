-- Everything of a session hangs on its row in `lease`, which outlives the session. Each write of a session is one call
-- of `save_session`, which first moves that row's version on: the row's lock is the only one that is ever waited for.

-- The server's clock, by which leases expire. Read once a statement.
CREATE FUNCTION clock_ms() RETURNS double precision LANGUAGE sql VOLATILE AS
  $$ SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 $$;

-- The server's time for people.
CREATE FUNCTION wall_ms() RETURNS double precision LANGUAGE sql VOLATILE AS
  $$ SELECT floor(extract(epoch FROM clock_timestamp())::double precision * 1000) $$;

CREATE SEQUENCE input_seq;

CREATE TABLE lease (
  session_id text COLLATE "C" PRIMARY KEY,
  -- Counts the session's writes, but for renewals: a write is made from what was read at one version.
  version bigint NOT NULL,
  -- The newest writes, by the names their callers gave them: who lost the connection can ask.
  receipts text[] NOT NULL,
  fencing_token bigint NOT NULL CHECK (fencing_token >= 0),
  predecessors text, -- JSON
  -- NULL, with all that follows: free.
  holder_id text,
  holder text, -- JSON
  ttl_ms double precision,
  renew_count bigint,
  expires_clock_ms double precision,
  acquired_at_ms double precision,
  expires_at_ms double precision,
  CHECK (num_nonnulls(holder_id, holder, ttl_ms, renew_count, expires_clock_ms, acquired_at_ms, expires_at_ms) IN (0, 7))
) WITH (fillfactor = 70);

CREATE TABLE session (
  session_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id text COLLATE "C" NOT NULL UNIQUE REFERENCES lease,
  created_at_ms double precision NOT NULL,
  updated_at_ms double precision NOT NULL,
  -- updated_at_ms in whole minutes: an index on the instant itself would move with each append.
  updated_minute bigint NOT NULL,
  revision bigint NOT NULL,
  compaction_count bigint NOT NULL,
  last_seq bigint NOT NULL,
  -- Entries up to here are archived: loading a context does not read them.
  archived_through_seq bigint NOT NULL,
  given_title text,
  first_title text,
  last_entry_at_ms double precision,
  last_role text,
  last_tool text, -- JSON
  turn_count bigint NOT NULL,
  tool_call_count bigint NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  compaction_health text, -- JSON
  -- The call that the session was made for; NULL: nobody's child. No reference: a child outlives its parent.
  parent_session_id text COLLATE "C",
  parent_turn_id text COLLATE "C",
  parent_call_id text,
  -- Its one end was told, or is nobody's business here.
  has_told_parent boolean NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX session_by_change ON session (updated_minute DESC);

-- A turn that ends looks for those of its children that have not begun.
CREATE INDEX session_by_parent ON session (parent_session_id, parent_turn_id)
  WHERE parent_session_id IS NOT NULL AND NOT has_told_parent;

CREATE TABLE turn (
  session_no bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  turn_id text COLLATE "C" NOT NULL,
  turn_no bigint GENERATED ALWAYS AS IDENTITY,
  fencing_token bigint NOT NULL,
  holder_id text NOT NULL,
  holder text NOT NULL, -- JSON
  started_at_ms double precision NOT NULL,
  stop text, -- JSON
  -- NULL: it runs.
  outcome text CHECK (outcome IN ('answered', 'interrupted', 'failed')),
  reason text,
  detail text, -- JSON
  usage text, -- JSON
  ended_at_ms double precision,
  -- A turn's entries lie between these two in its session, but for those that came late. NULL: it runs.
  from_seq bigint NOT NULL,
  through_seq bigint,
  -- It waits for answers, and nobody holds it. NULL: it runs, or has ended.
  suspended_at_ms double precision,
  -- The calls that somebody was asked about, with the answers, in the order of asking. NULL: none.
  approvals text, -- JSON
  PRIMARY KEY (session_no, turn_id),
  CHECK ((outcome IS NULL) = (ended_at_ms IS NULL))
) WITH (fillfactor = 90);

CREATE UNIQUE INDEX turn_open ON turn (session_no) WHERE outcome IS NULL;

CREATE INDEX turn_newest ON turn (session_no, turn_no);

CREATE TABLE input (
  session_no bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  input_id text COLLATE "C" NOT NULL,
  input_no bigint GENERATED ALWAYS AS IDENTITY,
  seq bigint NOT NULL,
  text text NOT NULL, -- a JSON string: the character of code 0 cannot stand in a text
  digest text NOT NULL,
  delivery text NOT NULL CHECK (delivery IN ('turn', 'steer')),
  offered_at_ms double precision NOT NULL,
  -- NULL: an orphan, or no longer pending.
  runner text, -- JSON
  -- Until then the runner is taken to live; its process says so again and again. NULL: there is none.
  runner_until_clock_ms double precision,
  woken_clock_ms double precision,
  -- Pending while both are NULL, taken with a turn alone, settled with an end.
  turn_id text COLLATE "C",
  ended_as text CHECK (ended_as IN ('answered', 'interrupted', 'failed', 'cancelled', 'expired')),
  ended_at_ms double precision,
  -- The child whose end the input tells of; NULL: somebody's message.
  child text, -- JSON
  -- What its turn is asked with, for whoever runs it; NULL: nothing, or it is settled.
  settings text, -- JSON
  PRIMARY KEY (session_no, input_id),
  FOREIGN KEY (session_no, turn_id) REFERENCES turn ON DELETE CASCADE,
  CHECK ((ended_as IS NULL) = (ended_at_ms IS NULL)),
  CHECK (runner IS NULL OR (turn_id IS NULL AND ended_as IS NULL)),
  CHECK ((runner IS NULL) = (runner_until_clock_ms IS NULL))
) WITH (fillfactor = 90);

CREATE INDEX input_open ON input (session_no, seq) WHERE ended_as IS NULL;

CREATE TABLE entry (
  entry_no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_no bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  seq bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  turn_id text COLLATE "C" NOT NULL,
  body text NOT NULL, -- JSON
  digest text NOT NULL,
  at_ms double precision NOT NULL,
  -- Where it stands in the context: its own seq, or for a summary the last seq of what it replaced.
  place bigint NOT NULL,
  archived boolean NOT NULL DEFAULT false,
  late boolean NOT NULL DEFAULT false,
  -- As a search compares it.
  folded text NOT NULL,
  UNIQUE (session_no, seq),
  CONSTRAINT entry_key UNIQUE (session_no, key)
);

CREATE INDEX entry_summary ON entry (session_no, place) WHERE place <> seq AND NOT archived;

CREATE INDEX entry_late ON entry (session_no, turn_id, seq) WHERE late;

-- The calls of the turns that run.
CREATE TABLE call (
  session_no bigint NOT NULL REFERENCES session ON DELETE CASCADE,
  turn_id text COLLATE "C" NOT NULL,
  call_id text COLLATE "C" NOT NULL,
  call_no bigint NOT NULL,
  name text NOT NULL, -- JSON
  is_open boolean NOT NULL,
  PRIMARY KEY (session_no, turn_id, call_id)
) WITH (fillfactor = 70);

-- What a write is decided from, all of one moment: STABLE makes every query in it see what the caller's does.
CREATE FUNCTION load_session(p_session_id text, p_keys text[], p_turn_ids text[], p_input_ids text[]) RETURNS json
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
  v_no bigint;
  v_clock double precision := clock_ms();
BEGIN
  -- A standby may be behind: of what it does not know nothing is decided, and it would take no write either.
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'a standby cannot tell what a write is to be decided on' USING ERRCODE = '25006';
  END IF;
  SELECT session_no INTO v_no FROM session WHERE session_id = p_session_id;
  RETURN json_build_object(
    'clock_ms', v_clock,
    'wall_ms', wall_ms(),
    'lease', (SELECT row_to_json(lease) FROM lease WHERE session_id = p_session_id),
    'session', (SELECT row_to_json(session) FROM session WHERE session_no = v_no),
    'turns', (
      SELECT json_agg(turn) FROM turn
      WHERE session_no = v_no AND (outcome IS NULL OR turn_id = ANY (p_turn_ids)
        OR turn_no = (SELECT max(turn_no) FROM turn WHERE session_no = v_no))
    ),
    'inputs', (
      SELECT json_agg(one ORDER BY one.seq) FROM (
        SELECT *, runner_until_clock_ms <= v_clock AS runner_is_gone
        FROM input WHERE session_no = v_no AND ended_as IS NULL
        UNION ALL
        SELECT *, NULL FROM input WHERE session_no = v_no AND ended_as IS NOT NULL AND input_id = ANY (p_input_ids)
      ) AS one
    ),
    'calls', (SELECT json_agg(call ORDER BY call_no) FROM call WHERE session_no = v_no),
    'digests', (
      SELECT json_object_agg(key, digest) FROM entry WHERE session_no = v_no AND key = ANY (p_keys)
    ),
    -- Children of the running turn that have no turn of their own.
    'unbegun_children', (
      SELECT json_agg(child.session_id ORDER BY child.session_no)
      FROM session AS child JOIN turn ON turn.turn_id = child.parent_turn_id
      WHERE child.parent_session_id = p_session_id AND NOT child.has_told_parent AND child.turn_count = 0
        AND turn.session_no = v_no AND turn.outcome IS NULL
    ),
    -- Of a child whose parent waits: the last that its running turn has said, newest first.
    'last_bodies', (
      SELECT json_agg(said.body ORDER BY said.seq DESC) FROM (
        SELECT entry.body, entry.seq FROM session JOIN turn USING (session_no) JOIN entry USING (session_no, turn_id)
        WHERE session_no = v_no AND parent_session_id IS NOT NULL AND NOT has_told_parent AND outcome IS NULL
          AND entry.seq >= from_seq AND NOT late
        ORDER BY entry.seq DESC LIMIT 16
      ) AS said
    )
  );
END $$;

-- Moves the version on and answers the new one; NULL where the session is no longer as it was read.
CREATE FUNCTION advance_version(p_session_id text, p_version bigint, p_receipt text, p_lease jsonb) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
DECLARE
  v_version bigint;
  v_lease lease := jsonb_populate_record(NULL::lease, p_lease);
BEGIN
  IF p_version = 0 THEN
    INSERT INTO lease (session_id, version, receipts, fencing_token) VALUES (p_session_id, 0, '{}', 0)
    ON CONFLICT DO NOTHING;
  END IF;
  IF p_lease IS NULL THEN
    UPDATE lease SET version = version + 1, receipts = (p_receipt || receipts)[1:8]
    WHERE session_id = p_session_id AND version = p_version
    RETURNING version INTO v_version;
    RETURN v_version;
  END IF;
  IF p_lease ? 'ttl_from_now' THEN
    v_lease.expires_clock_ms := clock_ms() + v_lease.ttl_ms;
    v_lease.expires_at_ms := wall_ms() + v_lease.ttl_ms;
  END IF;
  -- A renewal moves no version, so whoever takes a lease from its holder names the renewals it had judged.
  UPDATE lease SET version = lease.version + 1, receipts = (p_receipt || lease.receipts)[1:8],
    fencing_token = v_lease.fencing_token, predecessors = v_lease.predecessors, holder_id = v_lease.holder_id,
    holder = v_lease.holder, ttl_ms = v_lease.ttl_ms, renew_count = v_lease.renew_count,
    expires_clock_ms = v_lease.expires_clock_ms, acquired_at_ms = v_lease.acquired_at_ms,
    expires_at_ms = v_lease.expires_at_ms
  WHERE session_id = p_session_id AND lease.version = p_version
    AND (p_lease ->> 'judged_renew_count' IS NULL OR lease.renew_count = (p_lease ->> 'judged_renew_count')::bigint)
  RETURNING version INTO v_version;
  RETURN v_version;
END $$;

-- Stores what a call changed of a session, all of it or, where the version has moved on since, nothing (NULL).
CREATE FUNCTION save_session(p_session_id text, p_version bigint, p_receipt text, p_changes jsonb) RETURNS json
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
DECLARE
  v_version bigint;
  v_no bigint := (p_changes ->> 'session_no')::bigint;
  v_at double precision := coalesce((p_changes ->> 'at_ms')::double precision, wall_ms());
  v_seq bigint;
BEGIN
  PERFORM set_config('lock_timeout', p_changes ->> 'lock_timeout', true);
  v_version := advance_version(p_session_id, p_version, p_receipt, p_changes -> 'lease');
  IF v_version IS NULL THEN
    RETURN NULL;
  END IF;
  IF p_changes ? 'is_deleted' THEN
    DELETE FROM session WHERE session_id = p_session_id;
  END IF;
  IF p_changes ? 'session' THEN
    v_no := store_session(p_session_id, v_no, v_at, p_changes -> 'session');
  END IF;
  IF p_changes ? 'turns' THEN
    INSERT INTO turn (session_no, turn_id, fencing_token, holder_id, holder, started_at_ms, stop, outcome, reason,
      detail, usage, ended_at_ms, from_seq, through_seq, suspended_at_ms, approvals)
    SELECT v_no, turn_id, fencing_token, holder_id, holder, coalesce(started_at_ms, v_at), stop, outcome, reason, detail,
      usage, CASE WHEN outcome IS NOT NULL THEN coalesce(ended_at_ms, v_at) END, from_seq, through_seq,
      suspended_at_ms, approvals
    FROM jsonb_populate_recordset(NULL::turn, p_changes -> 'turns')
    ON CONFLICT (session_no, turn_id) DO UPDATE SET fencing_token = excluded.fencing_token,
      holder_id = excluded.holder_id, holder = excluded.holder, stop = excluded.stop, outcome = excluded.outcome,
      reason = excluded.reason, detail = excluded.detail, usage = excluded.usage, ended_at_ms = excluded.ended_at_ms,
      through_seq = excluded.through_seq, suspended_at_ms = excluded.suspended_at_ms, approvals = excluded.approvals;
  END IF;
  IF p_changes ? 'inputs' THEN
    INSERT INTO input (session_no, input_id, seq, text, digest, delivery, offered_at_ms, runner, runner_until_clock_ms,
      woken_clock_ms, turn_id, ended_as, ended_at_ms, child, settings)
    SELECT v_no, input_id, coalesce(seq, nextval('input_seq')), text, digest, delivery, coalesce(offered_at_ms, v_at), runner,
      CASE WHEN runner IS NOT NULL
        THEN coalesce(runner_until_clock_ms, clock_ms() + (p_changes ->> 'runner_ttl_ms')::double precision) END,
      woken_clock_ms, turn_id, ended_as, CASE WHEN ended_as IS NOT NULL THEN coalesce(ended_at_ms, v_at) END, child,
      settings
    FROM jsonb_populate_recordset(NULL::input, p_changes -> 'inputs')
    ON CONFLICT (session_no, input_id) DO UPDATE SET seq = excluded.seq, text = excluded.text, digest = excluded.digest,
      delivery = excluded.delivery, offered_at_ms = excluded.offered_at_ms, runner = excluded.runner,
      -- Its process may have said that it lives since the row was read, which moves no version.
      runner_until_clock_ms = CASE WHEN excluded.runner IS NOT NULL
        THEN greatest(excluded.runner_until_clock_ms, input.runner_until_clock_ms) END,
      woken_clock_ms = excluded.woken_clock_ms, turn_id = excluded.turn_id, ended_as = excluded.ended_as,
      ended_at_ms = excluded.ended_at_ms, child = excluded.child, settings = excluded.settings;
    -- The number of the one that had none.
    SELECT seq INTO v_seq FROM input WHERE session_no = v_no
      AND input_id = jsonb_path_query_first(p_changes, '$.inputs[*] ? (@.seq == null).input_id') #>> '{}';
  END IF;
  IF p_changes ? 'archives' THEN
    UPDATE entry SET archived = true
    WHERE session_no = v_no AND NOT archived AND seq > (p_changes #>> '{archives,after_seq}')::bigint
      AND place <= (p_changes #>> '{archives,through_seq}')::bigint;
  END IF;
  IF p_changes ? 'entries' THEN
    PERFORM store_entries(v_no, v_at, p_changes -> 'entries');
  END IF;
  IF p_changes ? 'calls' THEN
    INSERT INTO call (session_no, turn_id, call_id, call_no, name, is_open)
    SELECT v_no, turn_id, call_id, call_no, name, is_open
    FROM jsonb_populate_recordset(NULL::call, p_changes -> 'calls')
    ON CONFLICT (session_no, turn_id, call_id) DO UPDATE SET is_open = excluded.is_open;
  END IF;
  IF p_changes ? 'forgotten_turns' THEN
    DELETE FROM call
    WHERE session_no = v_no AND turn_id = ANY (ARRAY(SELECT jsonb_array_elements_text(p_changes -> 'forgotten_turns')));
  END IF;
  -- Who waits to hear of this session listens to the channel that bears the schema's name. Only where there is somebody
  -- to tell: commits that notify wait for each other, all over the database.
  IF p_changes ? 'rings' THEN
    PERFORM pg_notify(current_schema(), p_session_id);
  END IF;
  RETURN json_build_object('version', v_version, 'session_no', v_no, 'input_seq', v_seq, 'at_ms', v_at);
END $$;

-- The same of several sessions at once: a child's end is told to its parent in the write of that end. Their rows in
-- `lease` are locked in one order, whoever writes which.
CREATE FUNCTION save_sessions(p_writes jsonb) RETURNS json
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
DECLARE
  v_write jsonb;
  v_saved json;
  v_first json;
BEGIN
  FOR v_write IN SELECT one FROM jsonb_array_elements(p_writes) AS one ORDER BY one ->> 'session_id' COLLATE "C" LOOP
    v_saved := save_session(v_write ->> 'session_id', (v_write ->> 'version')::bigint, v_write ->> 'receipt',
      v_write -> 'changes');
    IF v_saved IS NULL THEN
      RAISE EXCEPTION 'session % has moved on', v_write ->> 'session_id' USING ERRCODE = 'TK001';
    END IF;
    IF v_write ->> 'session_id' = p_writes #>> '{0,session_id}' THEN
      v_first := v_saved;
    END IF;
  END LOOP;
  RETURN v_first;
END $$;

CREATE FUNCTION store_session(p_session_id text, p_no bigint, p_at double precision, p_session jsonb) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
DECLARE
  v_no bigint := p_no;
  v_session session := jsonb_populate_record(NULL::session, p_session);
BEGIN
  v_session.updated_at_ms := coalesce(v_session.updated_at_ms, p_at);
  IF v_session.last_role IS NOT NULL THEN
    v_session.last_entry_at_ms := coalesce(v_session.last_entry_at_ms, p_at);
  END IF;
  IF p_no IS NULL THEN
    INSERT INTO session (session_id, created_at_ms, updated_at_ms, updated_minute, revision, compaction_count, last_seq,
      archived_through_seq, given_title, first_title, last_entry_at_ms, last_role, last_tool, turn_count,
      tool_call_count, input_tokens, output_tokens, compaction_health, parent_session_id, parent_turn_id,
      parent_call_id, has_told_parent)
    VALUES (p_session_id, coalesce(v_session.created_at_ms, p_at), v_session.updated_at_ms,
      floor(v_session.updated_at_ms / 60000), v_session.revision, v_session.compaction_count, v_session.last_seq,
      v_session.archived_through_seq, v_session.given_title, v_session.first_title, v_session.last_entry_at_ms,
      v_session.last_role, v_session.last_tool, v_session.turn_count, v_session.tool_call_count,
      v_session.input_tokens, v_session.output_tokens, v_session.compaction_health, v_session.parent_session_id,
      v_session.parent_turn_id, v_session.parent_call_id, v_session.has_told_parent)
    RETURNING session_no INTO v_no;
    RETURN v_no;
  END IF;
  UPDATE session SET updated_at_ms = v_session.updated_at_ms, updated_minute = floor(v_session.updated_at_ms / 60000),
    revision = v_session.revision, compaction_count = v_session.compaction_count, last_seq = v_session.last_seq,
    archived_through_seq = v_session.archived_through_seq, given_title = v_session.given_title,
    first_title = v_session.first_title, last_entry_at_ms = v_session.last_entry_at_ms, last_role = v_session.last_role,
    last_tool = v_session.last_tool, turn_count = v_session.turn_count, tool_call_count = v_session.tool_call_count,
    input_tokens = v_session.input_tokens, output_tokens = v_session.output_tokens,
    compaction_health = v_session.compaction_health, has_told_parent = v_session.has_told_parent
  WHERE session_no = p_no;
  RETURN p_no;
END $$;

CREATE FUNCTION store_entries(p_no bigint, p_at double precision, p_entries jsonb) RETURNS void
LANGUAGE sql VOLATILE SET search_path FROM CURRENT AS $$
  INSERT INTO entry (session_no, seq, key, turn_id, body, digest, at_ms, place, archived, late, folded)
  SELECT p_no, seq, key, turn_id, body, digest, coalesce(at_ms, p_at), place, archived, late, folded
  FROM jsonb_populate_recordset(NULL::entry, p_entries)
  ORDER BY seq
$$;

-- Pushes the expiry of a grant that stands. Durable as all else: the holder believes in what it was answered, and must not
-- believe for longer than a server that crashed remembers (LEASE-3).
CREATE FUNCTION renew_lease(p_session_id text, p_holder_id text, p_fencing_token bigint, p_ttl_ms double precision)
RETURNS boolean LANGUAGE sql VOLATILE SET search_path FROM CURRENT AS $$
  WITH renewed AS (
    UPDATE lease SET ttl_ms = p_ttl_ms, renew_count = renew_count + 1, expires_clock_ms = clock_ms() + p_ttl_ms,
      expires_at_ms = wall_ms() + p_ttl_ms
    WHERE session_id = p_session_id AND holder_id = p_holder_id AND fencing_token = p_fencing_token
    RETURNING true
  )
  SELECT EXISTS (SELECT FROM renewed)
$$;

-- Says of runners that they live, for what each is to run still, and answers which of it that is, by place. Moves no
-- version: whoever takes over from a runner that seemed gone and the runner itself claim alike, and one of them gets it.
-- Not durable: a crash of the server that undoes it makes a runner seem gone, and it says so again.
CREATE FUNCTION vouch_for_runners(p_session_ids text[], p_input_ids text[], p_runner_ids text[], p_ttl_ms double precision)
RETURNS json LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
DECLARE
  v_places json;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT coalesce(json_agg(place), '[]') INTO v_places
  FROM unnest(p_session_ids, p_input_ids, p_runner_ids) WITH ORDINALITY AS told(session_id, input_id, runner_id, place)
    JOIN session USING (session_id) JOIN input USING (session_no, input_id)
  WHERE runner::json ->> 'runnerId' = told.runner_id;
  -- Waits for no lock, so that it stands in nobody's way: what is being written now has its next time.
  UPDATE input SET runner_until_clock_ms = greatest(input.runner_until_clock_ms, clock_ms() + p_ttl_ms)
  FROM (
    SELECT session_no, input_id
    FROM unnest(p_session_ids, p_input_ids, p_runner_ids) AS told(session_id, input_id, runner_id)
      JOIN session USING (session_id) JOIN input USING (session_no, input_id)
    WHERE runner::json ->> 'runnerId' = told.runner_id
    FOR NO KEY UPDATE OF input SKIP LOCKED
  ) AS own
  WHERE input.session_no = own.session_no AND input.input_id = own.input_id;
  RETURN v_places;
END $$;
