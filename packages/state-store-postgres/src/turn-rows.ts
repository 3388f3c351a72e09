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
import type { SessionImage } from "./session-image.ts";

export interface TurnRow {
  /** In the order of beginning; absent in a row that this call made. */
  readonly turn_no?: number;
  readonly turn_id: string;
  readonly fencing_token: number;
  readonly holder_id: string;
  readonly holder: string;
  /** Null in a row that this call made: the server says when. */
  readonly started_at_ms: number | null;
  readonly stop: string | null;
  readonly outcome: TurnOutcome | null;
  readonly reason: string | null;
  /** JSON, as whatever may have any character in it. */
  readonly detail: string | null;
  readonly usage: string | null;
  readonly ended_at_ms: number | null;
  readonly from_seq: number;
  readonly through_seq: number | null;
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
    startedAtMs: row.started_at_ms ?? 0,
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

type SuspendedRow = TurnRow & { readonly suspended_at_ms: number };

export function isSuspended(row: TurnRow): row is SuspendedRow {
  return row.outcome === null && row.suspended_at_ms !== null;
}

export function suspendedTurn(sessionId: string, row: SuspendedRow): SuspendedTurn {
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

/** The session's turn, where it waits for answers. */
export function suspendedTurnOf(image: SessionImage): SuspendedTurn | undefined {
  const row = image.openTurn;
  return row && isSuspended(row) ? suspendedTurn(image.sessionId, row) : undefined;
}

function endedTurn(sessionId: string, row: TurnRow, outcome: TurnOutcome): EndedTurn {
  const stop = stopOf(row);
  return {
    ...facts(sessionId, row),
    state: "ended",
    outcome,
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.detail === null ? {} : { detail: parseJson<string>(row.detail, "turn.detail") }),
    ...(stop ? { stop } : {}),
    ...(row.usage === null ? {} : { usage: parseJson<Usage>(row.usage, "turn.usage") }),
    endedAtMs: row.ended_at_ms ?? 0,
  };
}

export function turnRecord(sessionId: string, row: TurnRow): TurnRecord {
  return row.outcome === null ? openTurn(sessionId, row) : endedTurn(sessionId, row, row.outcome);
}

export function startTurn(
  image: SessionImage,
  turn: { readonly turnId: string; readonly fencingToken: number; readonly holder: Holder },
): void {
  const session = image.ensureSession();
  image.putTurn({
    turn_id: turn.turnId,
    fencing_token: turn.fencingToken,
    holder_id: turn.holder.holderId,
    holder: JSON.stringify(turn.holder),
    started_at_ms: image.stamp,
    stop: null,
    outcome: null,
    reason: null,
    detail: null,
    usage: null,
    ended_at_ms: null,
    from_seq: session.last_seq + 1,
    through_seq: null,
    suspended_at_ms: null,
    approvals: null,
  });
  image.putSession({ ...session, turn_count: session.turn_count + 1 });
}

/** Ends the row alone; its calls and inputs are the settlement's business. What was asked of it gives way to what stopped it. */
export function endTurn(image: SessionImage, row: TurnRow, end: TurnEnd): EndedTurn {
  const ended: TurnRow = {
    ...row,
    stop: toJson(end.stop),
    outcome: end.outcome,
    reason: end.reason ?? null,
    detail: toJson(end.detail),
    usage: toJson(end.usage),
    ended_at_ms: image.stamp,
    through_seq: image.ensureSession().last_seq,
    suspended_at_ms: null,
  };
  image.putTurn(ended);
  return endedTurn(image.sessionId, ended, end.outcome);
}

export function suspendTurn(
  image: SessionImage,
  row: TurnRow,
  { approvals, usage }: Pick<SuspendedTurn, "approvals" | "usage">,
): SuspendedRow {
  const suspended = {
    ...row,
    stop: null,
    suspended_at_ms: image.atMs,
    approvals: JSON.stringify(approvals),
    usage: toJson(usage),
  };
  image.putTurn(suspended);
  return suspended;
}

/** The suspended turn goes on under a new grant. */
export function resumeTurn(image: SessionImage, row: TurnRow, fencingToken: number, holder: Holder): RunningTurn {
  const resumed: TurnRow = {
    ...row,
    fencing_token: fencingToken,
    holder_id: holder.holderId,
    holder: JSON.stringify(holder),
    suspended_at_ms: null,
    usage: null,
  };
  image.putTurn(resumed);
  return runningTurn(image.sessionId, resumed);
}
