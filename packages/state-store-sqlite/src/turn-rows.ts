import type {
  AskedCall,
  EndedTurn,
  Holder,
  OpenTurn,
  RunningTurn,
  StopRequest,
  SuspendedTurn,
  TurnOutcome,
  TurnRecord,
  Usage,
} from "@turnkeeper/state-store";
import { parseJson, toJson } from "./json-column.ts";
import { countTurn } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import type { Transaction } from "./transaction.ts";

export interface TurnRow {
  readonly turn_id: string;
  readonly fencing_token: number;
  readonly holder_id: string;
  readonly holder: string;
  readonly started_at_ms: number;
  readonly stop: string | null;
  readonly outcome: TurnOutcome | null;
  readonly reason: string | null;
  readonly detail: string | null;
  readonly usage: string | null;
  readonly ended_at_ms: number | null;
  readonly suspended_at_ms: number | null;
  readonly approvals: string | null;
}

/** How a turn ends. */
export interface TurnEnd {
  readonly outcome: TurnOutcome;
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
  readonly stop?: StopRequest | undefined;
  readonly usage?: Usage | undefined;
}

export function turnHolder(row: TurnRow): Holder {
  return parseJson<Holder>(row.holder, "turn.holder");
}

export function approvalsOf(row: Pick<TurnRow, "approvals">): readonly AskedCall[] | undefined {
  return row.approvals === null ? undefined : parseJson<readonly AskedCall[]>(row.approvals, "turn.approvals");
}

function facts(sessionId: string, row: TurnRow): Omit<RunningTurn, "state" | "stop"> {
  const approvals = approvalsOf(row);
  return {
    sessionId,
    turnId: row.turn_id,
    fencingToken: row.fencing_token,
    holder: turnHolder(row),
    startedAtMs: row.started_at_ms,
    ...(approvals ? { approvals } : {}),
  };
}

export function stopOf(row: Pick<TurnRow, "stop">): StopRequest | undefined {
  return row.stop === null ? undefined : parseJson<StopRequest>(row.stop, "turn.stop");
}

export function runningTurn(sessionId: string, row: TurnRow): RunningTurn {
  const stop = stopOf(row);
  return { ...facts(sessionId, row), state: "running", ...(stop ? { stop } : {}) };
}

export function isSuspended(row: TurnRow): row is TurnRow & { readonly suspended_at_ms: number } {
  return row.outcome === null && row.suspended_at_ms !== null;
}

export function suspendedTurn(sessionId: string, row: TurnRow & { readonly suspended_at_ms: number }): SuspendedTurn {
  return {
    ...facts(sessionId, row),
    state: "suspended",
    suspendedAtMs: row.suspended_at_ms,
    approvals: approvalsOf(row) ?? [],
    ...(row.usage === null ? {} : { usage: parseJson<Usage>(row.usage, "turn.usage") }),
  };
}

/** A row without an end. */
export function openTurn(sessionId: string, row: TurnRow): OpenTurn {
  return isSuspended(row) ? suspendedTurn(sessionId, row) : runningTurn(sessionId, row);
}

function endedTurn(sessionId: string, row: TurnRow, outcome: TurnOutcome, endedAtMs: number): EndedTurn {
  const stop = stopOf(row);
  return {
    ...facts(sessionId, row),
    state: "ended",
    outcome,
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.detail === null ? {} : { detail: row.detail }),
    ...(stop ? { stop } : {}),
    ...(row.usage === null ? {} : { usage: parseJson<Usage>(row.usage, "turn.usage") }),
    endedAtMs,
  };
}

export function turnRecord(sessionId: string, row: TurnRow): TurnRecord {
  return row.outcome === null || row.ended_at_ms === null
    ? openTurn(sessionId, row)
    : endedTurn(sessionId, row, row.outcome, row.ended_at_ms);
}

export function findTurn(tx: Transaction, session: SessionRow, turnId: string): TurnRow | undefined {
  return tx.rows.get<TurnRow>("SELECT * FROM turn WHERE session_no = ? AND turn_id = ?", session.session_no, turnId);
}

/** Whether the turn runs; absent when it was never begun. */
export function doesRun(tx: Transaction, session: SessionRow, turnId: string): boolean | undefined {
  const row = tx.rows.get<{ runs: 0 | 1 }>(
    "SELECT outcome IS NULL AND suspended_at_ms IS NULL AS runs FROM turn WHERE session_no = ? AND turn_id = ?",
    session.session_no,
    turnId,
  );
  return row && row.runs === 1;
}

/** Between which entries those of the turn lie, but for those that came late. */
export function spanOf(
  tx: Transaction,
  session: SessionRow,
  turnId: string,
): { readonly from_seq: number; readonly through_seq: number | null } | undefined {
  return tx.rows.get(
    "SELECT from_seq, through_seq FROM turn WHERE session_no = ? AND turn_id = ?",
    session.session_no,
    turnId,
  );
}

/** The turn that has not ended: it runs, or is suspended. */
export function findOpenTurn(tx: Transaction, session: SessionRow): TurnRow | undefined {
  return tx.rows.get<TurnRow>("SELECT * FROM turn WHERE session_no = ? AND outcome IS NULL", session.session_no);
}

export function findSuspendedTurn(tx: Transaction, session: SessionRow): SuspendedTurn | undefined {
  const row = findOpenTurn(tx, session);
  return row && isSuspended(row) ? suspendedTurn(session.session_id, row) : undefined;
}

/** The turn that was begun last, ended or not. */
export function findNewestTurn(tx: Transaction, session: SessionRow): TurnRow | undefined {
  return tx.rows.get<TurnRow>(
    "SELECT * FROM turn WHERE session_no = ? ORDER BY turn_no DESC LIMIT 1",
    session.session_no,
  );
}

export function startTurn(
  tx: Transaction,
  session: SessionRow,
  turn: { readonly turnId: string; readonly fencingToken: number; readonly holder: Holder },
): void {
  tx.rows.run(
    `INSERT INTO turn (session_no, turn_id, fencing_token, holder_id, holder, started_at_ms, from_seq)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    session.session_no,
    turn.turnId,
    turn.fencingToken,
    turn.holder.holderId,
    JSON.stringify(turn.holder),
    tx.atMs,
    session.last_seq + 1,
  );
  countTurn(tx, session);
}

/** Ends the row alone; its calls and inputs are the settlement's business. What was asked of it gives way to what stopped it. */
export function endTurn(tx: Transaction, session: SessionRow, row: TurnRow, end: TurnEnd): EndedTurn {
  const ended: TurnRow = {
    ...row,
    stop: toJson(end.stop),
    outcome: end.outcome,
    reason: end.reason ?? null,
    detail: end.detail ?? null,
    usage: toJson(end.usage),
    ended_at_ms: tx.atMs,
    suspended_at_ms: null,
  };
  tx.rows.run(
    `UPDATE turn SET stop = ?, outcome = ?, reason = ?, detail = ?, usage = ?, ended_at_ms = ?, through_seq = ?,
       suspended_at_ms = NULL
     WHERE session_no = ? AND turn_id = ?`,
    ended.stop,
    ended.outcome,
    ended.reason,
    ended.detail,
    ended.usage,
    ended.ended_at_ms,
    session.last_seq,
    session.session_no,
    row.turn_id,
  );
  return endedTurn(session.session_id, ended, end.outcome, tx.atMs);
}

export function askToStop(tx: Transaction, session: SessionRow, turnId: string, stop: StopRequest): void {
  tx.rows.run(
    "UPDATE turn SET stop = ? WHERE session_no = ? AND turn_id = ?",
    JSON.stringify(stop),
    session.session_no,
    turnId,
  );
}

export function suspendTurn(
  tx: Transaction,
  session: SessionRow,
  row: TurnRow,
  { approvals, usage }: Pick<SuspendedTurn, "approvals" | "usage">,
): TurnRow & { readonly suspended_at_ms: number } {
  const suspended = {
    ...row,
    stop: null,
    suspended_at_ms: tx.atMs,
    approvals: JSON.stringify(approvals),
    usage: toJson(usage),
  };
  tx.rows.run(
    "UPDATE turn SET stop = NULL, suspended_at_ms = ?, approvals = ?, usage = ? WHERE session_no = ? AND turn_id = ?",
    suspended.suspended_at_ms,
    suspended.approvals,
    suspended.usage,
    session.session_no,
    row.turn_id,
  );
  return suspended;
}

/** The suspended turn goes on under a new grant. */
export function resumeTurn(
  tx: Transaction,
  session: SessionRow,
  { turnId, sessionId, startedAtMs, approvals }: SuspendedTurn,
  fencingToken: number,
  holder: Holder,
): RunningTurn {
  tx.rows.run(
    `UPDATE turn SET fencing_token = ?, holder_id = ?, holder = ?, suspended_at_ms = NULL, usage = NULL
     WHERE session_no = ? AND turn_id = ?`,
    fencingToken,
    holder.holderId,
    JSON.stringify(holder),
    session.session_no,
    turnId,
  );
  return { state: "running", sessionId, turnId, fencingToken, holder, startedAtMs, approvals };
}

export function storeAnswers(
  tx: Transaction,
  session: SessionRow,
  turnId: string,
  approvals: readonly AskedCall[],
): void {
  tx.rows.run(
    "UPDATE turn SET approvals = ? WHERE session_no = ? AND turn_id = ?",
    JSON.stringify(approvals),
    session.session_no,
    turnId,
  );
}
