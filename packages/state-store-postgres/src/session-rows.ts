import { titleOf } from "@turnkeeper/state-store";
import type { EntryBody, ParentCall, SessionFacts, SessionRecord } from "@turnkeeper/state-store";
import { parseJson, toJson } from "./json-column.ts";
import type { SessionImage } from "./session-image.ts";

export interface SessionRow {
  /** Null in a row that this call made. */
  readonly session_no: number | null;
  /** Null, here and below: the moment of the write, as the server says it. */
  readonly created_at_ms: number | null;
  readonly updated_at_ms: number | null;
  readonly revision: number;
  readonly compaction_count: number;
  readonly last_seq: number;
  readonly archived_through_seq: number;
  readonly given_title: string | null;
  readonly first_title: string | null;
  /** Null also before the first entry; then `last_role` is null too. */
  readonly last_entry_at_ms: number | null;
  readonly last_role: EntryBody["role"] | null;
  readonly last_tool: string | null;
  readonly turn_count: number;
  readonly tool_call_count: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly compaction_health: string | null;
  readonly parent_session_id: string | null;
  readonly parent_turn_id: string | null;
  readonly parent_call_id: string | null;
  readonly has_told_parent: boolean;
}

export function parentOf(row: SessionRow): ParentCall | undefined {
  const { parent_session_id: sessionId, parent_turn_id: turnId, parent_call_id: callId } = row;
  return sessionId === null || turnId === null || callId === null ? undefined : { sessionId, turnId, callId };
}

export function newSessionRow(createdAtMs: number | null, parent?: ParentCall): SessionRow {
  return {
    session_no: null,
    created_at_ms: createdAtMs,
    updated_at_ms: createdAtMs,
    revision: 0,
    compaction_count: 0,
    last_seq: 0,
    archived_through_seq: 0,
    given_title: null,
    first_title: null,
    last_entry_at_ms: null,
    last_role: null,
    last_tool: null,
    turn_count: 0,
    tool_call_count: 0,
    input_tokens: 0,
    output_tokens: 0,
    compaction_health: null,
    parent_session_id: parent?.sessionId ?? null,
    parent_turn_id: parent?.turnId ?? null,
    parent_call_id: parent?.callId ?? null,
    has_told_parent: false,
  };
}

export function sessionRecord(sessionId: string, row: SessionRow): SessionRecord {
  const title = row.given_title ?? row.first_title ?? "";
  const parent = parentOf(row);
  const lastEntry =
    row.last_role === null
      ? undefined
      : {
          atMs: row.last_entry_at_ms ?? 0,
          role: row.last_role,
          ...(row.last_tool === null ? {} : { toolName: parseJson<string>(row.last_tool, "session.last_tool") }),
        };
  return {
    sessionId,
    createdAtMs: row.created_at_ms ?? 0,
    updatedAtMs: row.updated_at_ms ?? 0,
    revision: row.revision,
    entryCount: row.last_seq,
    ...(title === "" ? {} : { title }),
    ...(lastEntry ? { lastEntry } : {}),
    totals: {
      turnCount: row.turn_count,
      toolCallCount: row.tool_call_count,
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
    },
    ...(parent ? { parent } : {}),
  };
}

/** The transcript grew to `lastSeq` by entries with these facts, the last at `lastAtMs`: one more revision. */
export function reviseSession(
  image: SessionImage,
  lastSeq: number,
  facts: SessionFacts,
  lastAtMs: number | null,
): void {
  const row = image.ensureSession();
  const { firstText, lastEntry } = facts;
  image.putSession({
    ...row,
    revision: row.revision + 1,
    last_seq: lastSeq,
    updated_at_ms: image.stamp,
    first_title: row.first_title ?? (firstText === undefined ? null : titleOf(firstText)),
    last_entry_at_ms: lastAtMs,
    last_role: lastEntry?.role ?? null,
    last_tool: toJson(lastEntry?.toolName),
    tool_call_count: row.tool_call_count + facts.toolCallCount,
    input_tokens: row.input_tokens + facts.inputTokens,
    output_tokens: row.output_tokens + facts.outputTokens,
  });
}
