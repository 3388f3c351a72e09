/**
 * Makes a whole of the sessions, turns, inputs and leases that were brought: whatever a row refers to is there, tokens
 * never fall, and one turn at most runs. Everything made or changed is told.
 */
import type { SpooledStep } from "@turnkeeper/state-store";
import type { Connection } from "../connection.ts";
import type { Findings } from "./findings.ts";
import { endOvertaken, lostDetail, rememberEnded } from "./ended-turns.ts";
import { idOf } from "./session-names.ts";
import type { SessionNames } from "./session-names.ts";

/** Grants that left no trace may have followed the last one that did; a new one must be greater than they were. */
const lostGrantCount = 1000;

const lostHolder = JSON.stringify({ holderId: "lost", instanceId: "lost", host: "", bootId: "", pid: 0 });

export interface MendingParts {
  readonly rows: Connection;
  readonly findings: Findings;
  readonly names: SessionNames;
  /** What waits in the spool of the store. */
  readonly spooled: readonly SpooledStep[];
}

function makeSessions({ rows, findings, names }: MendingParts): void {
  const lost = rows.all<{ session_no: number; first_ms: number; last_ms: number }>(
    `SELECT session_no, min(at_ms) AS first_ms, max(at_ms) AS last_ms FROM (
       SELECT session_no, at_ms FROM entry UNION ALL SELECT session_no, offered_at_ms FROM input
       UNION ALL SELECT session_no, started_at_ms FROM turn)
     WHERE session_no NOT IN (SELECT session_no FROM session) GROUP BY session_no`,
  );
  for (const { session_no, first_ms, last_ms } of lost) {
    const name = names.nameOf(session_no);
    let id = name ?? `recovered-${session_no}`;
    while (rows.get("SELECT 1 FROM session WHERE session_id = ?", id)) id += "x";
    rows.run(
      `INSERT INTO session (session_no, session_id, created_at_ms, updated_at_ms, revision, compaction_count, last_seq,
         archived_through_seq) VALUES (?, ?, ?, ?, 0, 0, 0, 0)`,
      session_no,
      id,
      first_ms,
      last_ms,
    );
    findings.mend(
      id,
      name === undefined
        ? "the session's record and its id were lost; it has a made-up id"
        : "the session's record was lost; its id comes from an index",
    );
  }
}

/**
 * A message stands in the turn that took its input (INBOX-1). Where the two differ, the one whose turn has a record is
 * right; where both or neither have, the transcript, on which more hangs.
 */
function rejoinInputs({ rows, findings }: MendingParts): void {
  const hasTurn = (side: string): string =>
    `EXISTS (SELECT 1 FROM turn WHERE turn.session_no = ${side}.session_no AND turn.turn_id = ${side}.turn_id)`;
  const parted = rows.all<{
    input_no: number;
    entry_no: number;
    session_no: number;
    input_id: string;
    taken_by: string;
    said_in: string;
    is_input_right: 0 | 1;
  }>(
    `SELECT input_no, entry_no, session_no, input_id, input.turn_id AS taken_by, entry.turn_id AS said_in,
       (${hasTurn("input")} AND NOT ${hasTurn("entry")}) AS is_input_right
     FROM input JOIN entry USING (session_no)
     WHERE entry.key = 'input/' || input_id AND late = 0 AND entry.turn_id <> input.turn_id`,
  );
  for (const { input_no, entry_no, session_no, input_id, taken_by, said_in, is_input_right } of parted) {
    const turnId = is_input_right === 1 ? taken_by : said_in;
    rows.run("UPDATE input SET turn_id = ? WHERE input_no = ?", turnId, input_no);
    rows.run("UPDATE entry SET turn_id = ? WHERE entry_no = ?", turnId, entry_no);
    findings.mend(
      idOf(rows, session_no),
      `input ${input_id} and its message were of two turns, and are of turn ${turnId}`,
    );
  }
}

/** Behind every entry: that of a turn which none is left of. */
const noSeq = Number.MAX_SAFE_INTEGER;

interface LostTurn {
  readonly session_no: number;
  readonly turn_id: string;
  readonly first_seq: number;
  /** The least number in the queue of what it took. */
  readonly input_seq: number | null;
  readonly from_ms: number;
  readonly to_ms: number;
}

/** Tokens grow with the transcript, so that of the entry before is the least the turn can have had. */
function leastOfEntries(rows: Connection, { session_no, first_seq }: LostTurn): number | undefined {
  return rows.get<{ token: number }>(
    `SELECT fencing_token AS token FROM entry JOIN turn USING (session_no, turn_id)
     WHERE session_no = ? AND seq < ? AND late = 0 ORDER BY seq DESC LIMIT 1`,
    session_no,
    first_seq,
  )?.token;
}

/** No entry of it is left: it came behind the turns that took what was offered before, as inputs are taken in order. */
function leastOfInputs(rows: Connection, { session_no, input_seq }: LostTurn): number | undefined {
  const row = rows.get<{ token: number | null }>(
    `SELECT max(fencing_token) AS token FROM input JOIN turn USING (session_no, turn_id)
     WHERE session_no = ? AND input.seq < ?`,
    session_no,
    input_seq,
  );
  return row?.token ?? undefined;
}

function makeTurns({ rows, findings }: MendingParts): void {
  const lost = rows.all<LostTurn>(
    `SELECT session_no, turn_id, min(seq) AS first_seq, min(input_seq) AS input_seq, min(at_ms) AS from_ms,
       max(at_ms) AS to_ms FROM (
       SELECT session_no, turn_id, seq, NULL AS input_seq, at_ms FROM entry
       UNION ALL SELECT session_no, turn_id, ${noSeq}, seq, offered_at_ms FROM input WHERE turn_id IS NOT NULL) AS one
     WHERE NOT EXISTS (SELECT 1 FROM turn WHERE turn.session_no = one.session_no AND turn.turn_id = one.turn_id)
     GROUP BY session_no, turn_id ORDER BY session_no, first_seq, input_seq`,
  );
  for (const turn of lost) {
    const least = turn.first_seq === noSeq ? leastOfInputs(rows, turn) : leastOfEntries(rows, turn);
    const input = rows.get<{ ended_as: string }>(
      "SELECT ended_as FROM input WHERE session_no = ? AND turn_id = ? AND ended_as IN ('answered', 'interrupted', 'failed')",
      turn.session_no,
      turn.turn_id,
    );
    const outcome = input?.ended_as ?? "interrupted";
    rows.run(
      `INSERT INTO turn (session_no, turn_id, fencing_token, holder_id, holder, started_at_ms, outcome, reason, detail,
         ended_at_ms) VALUES (?, ?, ?, 'lost', ?, ?, ?, ?, ?, ?)`,
      turn.session_no,
      turn.turn_id,
      least ?? 1,
      lostHolder,
      turn.from_ms,
      outcome,
      outcome === "interrupted" ? "crashed" : null,
      lostDetail,
      turn.to_ms,
    );
    findings.mend(
      idOf(rows, turn.session_no),
      `the record of turn ${turn.turn_id} was lost and is made up as ${outcome}`,
    );
  }
}

/**
 * A turn that the spool has steps of and the store has not: its rows went with what is lost. It is made up as ended, so that
 * its steps come back late, shown beside a conversation that goes on without them, and its token is passed over (LEASE-2).
 */
function makeSpooledTurns({ rows, findings, spooled }: MendingParts): void {
  for (const { grant, turnId, keptAtMs } of spooled) {
    const { sessionId, holderId, fencingToken } = grant;
    rows.run(
      `INSERT INTO session (session_id, created_at_ms, updated_at_ms, revision, compaction_count, last_seq,
         archived_through_seq) VALUES (?, ?, ?, 0, 0, 0, 0) ON CONFLICT DO NOTHING`,
      sessionId,
      keptAtMs,
      keptAtMs,
    );
    const made = rows.run(
      `INSERT INTO turn (session_no, turn_id, fencing_token, holder_id, holder, started_at_ms, outcome, reason, detail,
         ended_at_ms)
       SELECT session_no, ?, ?, ?, json_set(?, '$.holderId', ?), ?, 'interrupted', 'crashed', ?, ? FROM session
       WHERE session_id = ? ON CONFLICT DO NOTHING`,
      turnId,
      fencingToken,
      holderId,
      lostHolder,
      holderId,
      keptAtMs,
      lostDetail,
      keptAtMs,
      sessionId,
    );
    if (made === 0) continue;
    rows.run("UPDATE session SET turn_count = turn_count + 1 WHERE session_id = ?", sessionId);
    findings.mend(
      sessionId,
      `turn ${turnId} is known from the spool alone and is made up as interrupted; what it took is lost, and what it had produced comes back late: shown, and no model context`,
    );
  }
}

interface TokenRow {
  readonly session_no: number;
  readonly session_id: string;
  /** The greatest that any turn of the session shows. */
  readonly high: number | null;
  /** Absent where the lease's own row is lost, or never was. */
  readonly token: number | null;
}

/** A lease that is lost belongs to the turn that runs, else it is free; one that is behind was overtaken. */
function mendLeases({ rows, findings }: MendingParts): void {
  const mayLackRows = findings.toldCount > 0;
  const behind = rows.all<TokenRow>(
    `SELECT session_no, session_id, lease.fencing_token AS token, (SELECT max(fencing_token) FROM turn
       WHERE turn.session_no = session.session_no) AS high
     FROM session LEFT JOIN lease USING (session_id) WHERE token IS NULL OR high > token`,
  );
  for (const { session_no, session_id, high, token } of behind) {
    if (token !== null) {
      rows.run(
        `UPDATE lease SET fencing_token = ?, holder_id = NULL, holder = NULL, ttl_ms = NULL, renew_count = NULL,
           expires_boot_id = NULL, expires_boot_ms = NULL, acquired_at_ms = NULL, expires_at_ms = NULL WHERE session_id = ?`,
        high,
        session_id,
      );
      findings.mend(session_id, `the lease was older than its turns; its fencing token is ${high} now, as theirs`);
    } else if (high !== null || mayLackRows) makeLease(rows, findings, { session_no, session_id, high: high ?? 0 });
  }
}

function makeLease(
  rows: Connection,
  findings: Findings,
  { session_no, session_id, high }: { readonly session_no: number; readonly session_id: string; readonly high: number },
): void {
  // Held by whoever runs its turn and expired long since, so that the next grant settles the turn as after any crash.
  const held = rows.run(
    `INSERT INTO lease (session_id, fencing_token, holder_id, holder, ttl_ms, renew_count, expires_boot_id,
       expires_boot_ms, acquired_at_ms, expires_at_ms)
     SELECT ?, fencing_token, holder_id, holder, 1, 0, coalesce(CAST(holder ->> '$.bootId' AS TEXT), ''), 0, started_at_ms,
       started_at_ms FROM turn
     WHERE session_no = ? AND outcome IS NULL AND suspended_at_ms IS NULL AND fencing_token = ?`,
    session_id,
    session_no,
    high,
  );
  if (held === 0)
    rows.run("INSERT INTO lease (session_id, fencing_token) VALUES (?, ?)", session_id, high + lostGrantCount);
  findings.mend(
    session_id,
    held > 0
      ? `the lease's record was lost; it is made up from the turn that runs, with fencing token ${high}`
      : `the lease's record was lost; its fencing token is ${high + lostGrantCount} now, above any that may have been granted`,
  );
}

/** What a turn took ends with it (INBOX-1). */
function settleInputs({ rows, findings }: MendingParts): void {
  const open = rows.all<{
    input_no: number;
    session_no: number;
    input_id: string;
    outcome: string;
    ended_at_ms: number;
  }>(
    `SELECT input_no, session_no, input_id, turn.outcome, turn.ended_at_ms FROM input JOIN turn USING (session_no, turn_id)
     WHERE input.ended_as IS NULL AND turn.outcome IS NOT NULL`,
  );
  for (const { input_no, session_no, input_id, outcome, ended_at_ms } of open) {
    rows.run(
      "UPDATE input SET ended_as = ?, ended_at_ms = ?, settings = NULL WHERE input_no = ?",
      outcome,
      ended_at_ms,
      input_no,
    );
    findings.mend(idOf(rows, session_no), `input ${input_id} ends as ${outcome}, as its turn did`);
  }
}

/** Everything but the transcript. After it every row that is referred to is there. */
export function mendRecords(parts: MendingParts): void {
  parts.names.settle();
  makeSessions(parts);
  rejoinInputs(parts);
  makeTurns(parts);
  makeSpooledTurns(parts);
  mendLeases(parts);
  endOvertaken(parts);
  rememberEnded(parts);
  settleInputs(parts);
}
