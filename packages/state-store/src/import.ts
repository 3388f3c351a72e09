/** What an import makes of a session's records: whoever ran it elsewhere does not run it here. */
import { CodedError } from "@turnkeeper/kernel";
import { resultOfOpenCall } from "./approval.ts";
import { callsOf } from "./entry.ts";
import type { Entry, ToolCallPart } from "./entry.ts";
import type { StoreErrorCode } from "./errors.ts";
import type { InputRecord, SettledInput } from "./inbox.ts";
import { digestOf } from "./json.ts";
import type { SessionRecord, SessionRecords } from "./session.ts";
import { sessionFactsOf } from "./session-facts.ts";
import { titleOf } from "./title.ts";
import type { EndedTurn, OpenTurn, TurnRecord } from "./turn.ts";
import { verifyRecords } from "./verify.ts";

const crashedDetail = "The session was exported while this turn ran, and imported without whoever ran it.";
/** One answer must not run a call twice, here and where the session was exported. */
const suspendedDetail =
  "The session was exported while this turn waited for approval; its calls are left to the store they were asked in.";

function refused(sessionId: string, what: string): CodedError<StoreErrorCode> {
  return new CodedError<StoreErrorCode>(
    "STORE_CONTRACT",
    `Could not import session ${sessionId}: ${what}. Nothing was imported.`,
    { context: { sessionId } },
  );
}

/** What a column of text cannot hold unchanged, or belongs to another session. */
function checkRow(sessionId: string, name: string, row: object): void {
  for (const [field, value] of Object.entries(row)) {
    if (typeof value === "string" && !value.isWellFormed())
      throw refused(sessionId, `${field} of ${name} is no text that a store can hold`);
    if (typeof value === "number" && (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER))
      throw refused(sessionId, `${field} of ${name} is no number that a store can hold`);
    if (field === "sessionId" && value !== sessionId)
      throw refused(sessionId, `${name} belongs to session ${String(value)}`);
  }
}

function orphaned(input: InputRecord): InputRecord {
  if (input.state === "settled") {
    const { settings: _settings, ...rest } = input;
    return rest;
  }
  if (input.state === "taken") return input;
  const { runner: _runner, ...orphan } = input;
  return orphan;
}

function settled(input: InputRecord, turnId: string, endedAtMs: number): InputRecord {
  if (input.state !== "taken" || input.turnId !== turnId) return input;
  const { state: _state, turnId: _turnId, settings: _settings, ...facts } = input;
  return { ...facts, state: "settled", turnId, end: "interrupted", endedAtMs } satisfies SettledInput;
}

function ended(turn: OpenTurn, endedAtMs: number): EndedTurn {
  const { sessionId, turnId, fencingToken, holder, startedAtMs, approvals, state } = turn;
  return {
    sessionId,
    turnId,
    fencingToken,
    holder,
    startedAtMs,
    ...(approvals ? { approvals } : {}),
    state: "ended",
    outcome: "interrupted",
    reason: "crashed",
    detail: state === "suspended" ? suspendedDetail : crashedDetail,
    endedAtMs,
  };
}

/** The calls that the turn left open, in order. */
function openCalls(entries: readonly Entry[], turnId: string): readonly ToolCallPart[] {
  const own = entries.filter((entry) => entry.turnId === turnId && !entry.late).map(({ body }) => body);
  const closed = new Set(own.flatMap((body) => (body.role === "tool" ? [body.callId] : [])));
  return own.flatMap(callsOf).filter(({ callId }) => !closed.has(callId));
}

/** A result for each open call, behind everything else. */
function closings(
  records: Pick<SessionRecords, "session" | "entries">,
  turn: OpenTurn,
  atMs: number,
): readonly Entry[] {
  const { session, entries } = records;
  const { turnId } = turn;
  const keys = new Set(entries.map(({ key }) => key));
  const lastSeq = Math.max(session.entryCount, entries.at(-1)?.seq ?? 0);
  return openCalls(entries, turnId).map((call, index) => {
    const wanted = `${turnId}/${call.callId}/unknown`;
    let key = wanted;
    for (let number = 2; keys.has(key); number++) key = `${wanted}/${number}`;
    const body = resultOfOpenCall(call, turn);
    const place = { key, seq: lastSeq + 1 + index, turnId };
    return { ...place, body, digest: digestOf(body), atMs, archived: false, late: false };
  });
}

/** The session as its entries tell it; what it was named is kept. */
function derived({ session, entries, turns }: Omit<SessionRecords, "lease">): SessionRecord {
  const { sessionId, createdAtMs, updatedAtMs, revision, parent } = session;
  const { firstText = "", lastEntry, ...sums } = sessionFactsOf(entries);
  const title = titleOf(session.title ?? firstText);
  return {
    sessionId,
    createdAtMs,
    updatedAtMs,
    revision,
    entryCount: Math.max(session.entryCount, entries.at(-1)?.seq ?? 0),
    ...(title === "" ? {} : { title }),
    ...(lastEntry ? { lastEntry } : {}),
    totals: { turnCount: turns.length, ...sums },
    ...(parent ? { parent } : {}),
  };
}

/**
 * The records that an import stores: nobody has the lease, a turn that had not ended is ended as crashed at `atMs` (its
 * calls have an unknown outcome, or did not run where it was suspended, its inputs are interrupted), what waits are
 * orphans, and what is derived is derived anew. All else is as it was. Pure; throws `STORE_CONTRACT` for records that `verifyRecords` finds fault with, or that name several
 * sessions.
 */
export function importOf(records: SessionRecords, atMs: number): SessionRecords {
  const { lease: _lease, ...rest } = records;
  const { sessionId } = rest.session;
  checkRow(sessionId, "the session", rest.session);
  for (const input of rest.inputs) checkRow(sessionId, `input ${input.inputId}`, input);
  for (const turn of rest.turns) checkRow(sessionId, `turn ${turn.turnId}`, turn);
  for (const entry of rest.entries) checkRow(sessionId, `entry ${entry.key} (seq ${entry.seq})`, entry);

  const open = rest.turns.filter((turn) => turn.state !== "ended");
  const closed = open.flatMap((turn) => closings(rest, turn, atMs));
  const isChanged = open.length > 0;
  const settledBy = (input: InputRecord): InputRecord =>
    open.reduce((one, { turnId }) => settled(one, turnId, atMs), orphaned(input));
  const kept: Omit<SessionRecords, "lease"> = {
    ...rest,
    session: {
      ...rest.session,
      revision: rest.session.revision + (closed.length > 0 ? 1 : 0),
      updatedAtMs: isChanged ? atMs : rest.session.updatedAtMs,
    },
    inputs: rest.inputs.map(settledBy).toSorted((left, right) => left.seq - right.seq),
    turns: rest.turns.map((turn): TurnRecord => (turn.state === "ended" ? turn : ended(turn, atMs))),
    entries: [...rest.entries, ...closed],
  };
  const imported = { ...kept, session: derived(kept) };
  const [fault] = verifyRecords(imported);
  if (fault) throw refused(sessionId, `${fault.detail} (${fault.rule})`);
  if (open.length > 1) throw refused(sessionId, "several turns run at once (LEASE-1)");
  return imported;
}
