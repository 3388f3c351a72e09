import { sessionFactsOf, titleOf } from "@turnkeeper/state-store";
import type { Entry, InputRecord, SessionRecords, TurnRecord } from "@turnkeeper/state-store";
import { bodyColumns } from "./entry-rows.ts";
import type { InputRow } from "./input-rows.ts";
import { toJson } from "./json-column.ts";
import { isHeld } from "./lease-rows.ts";
import type { SessionImage } from "./session-image.ts";
import type { SessionRow } from "./session-rows.ts";
import type { TurnRow } from "./turn-rows.ts";

/** Up to where a context need not be read: whatever stands there is archived, or a summary in the place of others. */
function archivedThrough({ entries, summaries }: SessionRecords): number {
  const placed = new Map(summaries.map(({ seq, throughSeq }) => [seq, throughSeq]));
  const firstActive = entries.find((entry) => !entry.archived && !placed.has(entry.seq));
  const wanted = Math.max(0, ...placed.values());
  return firstActive ? Math.min(wanted, firstActive.seq - 1) : wanted;
}

function sessionRow(records: SessionRecords): SessionRow {
  const { session, entries, compactionCount } = records;
  const { firstText, lastEntry } = sessionFactsOf(entries);
  const firstTitle = firstText === undefined ? null : titleOf(firstText);
  const { turnCount, toolCallCount, inputTokens, outputTokens } = session.totals;
  return {
    session_no: null,
    created_at_ms: session.createdAtMs,
    updated_at_ms: session.updatedAtMs,
    revision: session.revision,
    compaction_count: compactionCount,
    last_seq: session.entryCount,
    archived_through_seq: archivedThrough(records),
    given_title: session.title === undefined || session.title === firstTitle ? null : session.title,
    first_title: firstTitle,
    last_entry_at_ms: lastEntry?.atMs ?? null,
    last_role: lastEntry?.role ?? null,
    last_tool: toJson(lastEntry?.toolName),
    turn_count: turnCount,
    tool_call_count: toolCallCount,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    compaction_health: null,
    parent_session_id: session.parent?.sessionId ?? null,
    parent_turn_id: session.parent?.turnId ?? null,
    parent_call_id: session.parent?.callId ?? null,
    // Whoever wanted it wanted it elsewhere.
    has_told_parent: true,
  };
}

interface Span {
  readonly fromSeq: number;
  readonly throughSeq: number;
}

/** Where each turn's entries lie in the session, but for those that came late. */
function spansOf(entries: readonly Entry[]): ReadonlyMap<string, Span> {
  const all = new Map<string, Span>();
  for (const { turnId, seq, late } of entries)
    if (!late) all.set(turnId, { fromSeq: all.get(turnId)?.fromSeq ?? seq, throughSeq: seq });
  return all;
}

const nowhere: Span = { fromSeq: 1, throughSeq: 0 };

function turnRow(turn: TurnRecord, span: Span): TurnRow {
  const end = turn.state === "ended" ? turn : undefined;
  return {
    turn_id: turn.turnId,
    fencing_token: turn.fencingToken,
    holder_id: turn.holder.holderId,
    holder: JSON.stringify(turn.holder),
    started_at_ms: turn.startedAtMs,
    stop: toJson(end?.stop),
    outcome: end?.outcome ?? null,
    reason: end?.reason ?? null,
    detail: toJson(end?.detail),
    usage: toJson(end?.usage),
    ended_at_ms: end?.endedAtMs ?? null,
    from_seq: span.fromSeq,
    through_seq: end ? span.throughSeq : null,
    suspended_at_ms: null,
    approvals: toJson(turn.approvals),
  };
}

function inputRow(input: InputRecord, inputNo: number): InputRow {
  const settled = input.state === "settled" ? input : undefined;
  return {
    input_id: input.inputId,
    input_no: inputNo,
    seq: input.seq,
    text: JSON.stringify(input.text),
    digest: input.digest,
    delivery: input.delivery,
    offered_at_ms: input.offeredAtMs,
    runner: null,
    runner_until_clock_ms: null,
    woken_clock_ms: null,
    turn_id: input.state === "pending" ? null : (input.turnId ?? null),
    ended_as: settled?.end ?? null,
    ended_at_ms: settled?.endedAtMs ?? null,
    child: toJson(input.child),
    settings: toJson(input.settings),
  };
}

/** Makes a session of records that `importOf` answered, where there is none and nobody has its lease. */
export function addImported(image: SessionImage, records: SessionRecords): void {
  const { inputs, turns, entries, summaries } = records;
  image.putSession(sessionRow(records));
  const spanOf = spansOf(entries);
  for (const turn of turns) image.putTurn(turnRow(turn, spanOf.get(turn.turnId) ?? nowhere));
  for (const [index, input] of inputs.entries()) image.putInput(inputRow(input, index));
  const places = new Map(summaries.map(({ seq, throughSeq }) => [seq, throughSeq]));
  for (const entry of entries)
    image.addEntry({
      seq: entry.seq,
      key: entry.key,
      turn_id: entry.turnId,
      ...bodyColumns(entry.body),
      digest: entry.digest,
      at_ms: entry.atMs,
      place: places.get(entry.seq) ?? entry.seq,
      archived: entry.archived,
      late: entry.late,
    });
  // The token of a session that is not there may have been granted here before; it never falls (LEASE-2). A late write
  // of an expired holder must find its grant gone, so the token rises as with a deletion.
  const { lease } = image;
  const ownToken = lease ? lease.fencing_token + (isHeld(lease) ? 1 : 0) : 0;
  const fencingToken = Math.max(records.fencingToken, ownToken);
  image.putLease({ fencing_token: fencingToken, predecessors: lease?.predecessors ?? null, holder_id: null });
}
