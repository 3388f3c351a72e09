import { callsOf, digestOf, sessionFactsOf } from "@turnkeeper/state-store";
import type { Entry, EntryBody, EntryDraft } from "@turnkeeper/state-store";
import { parseJson } from "./json-column.ts";
import { reviseSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { storeError } from "./store-failure.ts";
import type { Transaction } from "./transaction.ts";

export interface EntryRow {
  readonly seq: number;
  readonly key: string;
  readonly turn_id: string;
  readonly body: string;
  readonly digest: string;
  readonly at_ms: number;
  readonly archived: number;
  readonly late: number;
}

export const entryColumns = "seq, key, turn_id, body, digest, at_ms, archived, late";

export function entryOf(row: EntryRow): Entry {
  return {
    key: row.key,
    body: parseJson<EntryBody>(row.body, `entry.body (seq ${row.seq}, key ${row.key})`),
    seq: row.seq,
    turnId: row.turn_id,
    digest: row.digest,
    atMs: row.at_ms,
    archived: row.archived === 1,
    late: row.late === 1,
  };
}

/** A draft with the digest that tells a retry from other content. */
interface DigestedDraft extends EntryDraft {
  readonly digest: string;
}

/** The drafts that are not stored yet; throws `ENTRY_CONFLICT` on a known key with other content. */
export function unknownDrafts(tx: Transaction, session: SessionRow, drafts: readonly EntryDraft[]): DigestedDraft[] {
  const seen = new Map<string, string>();
  return drafts.flatMap((draft) => {
    const digest = digestOf(draft.body);
    const known = seen.get(draft.key) ?? storedDigest(tx, session, draft.key);
    seen.set(draft.key, digest);
    if (known === undefined) return [{ ...draft, digest }];
    if (known === digest) return [];
    throw storeError(
      "ENTRY_CONFLICT",
      `Entry ${draft.key} of session ${session.session_id} is stored with other content.`,
      {
        key: draft.key,
      },
    );
  });
}

/**
 * A draft of the store's own. It is stored whatever happens, since a settlement that failed on a key would leave its
 * session stuck for good: a key that somebody used already gets a number.
 */
export function ownDraft(tx: Transaction, session: SessionRow, draft: EntryDraft): DigestedDraft {
  let key = draft.key;
  for (let number = 2; storedDigest(tx, session, key) !== undefined; number++) key = `${draft.key}/${number}`;
  return { key, body: draft.body, digest: digestOf(draft.body) };
}

export function storedDigest(tx: Transaction, session: SessionRow, key: string): string | undefined {
  return tx.rows.get<{ digest: string }>(
    "SELECT digest FROM entry WHERE session_no = ? AND key = ?",
    session.session_no,
    key,
  )?.digest;
}

/**
 * Stores drafts that are not there yet and opens and closes their calls (PAIR-1), which late ones do not: one more
 * revision.
 */
export function addEntries(
  tx: Transaction,
  session: SessionRow,
  turnId: string,
  drafts: readonly DigestedDraft[],
  { atMs = tx.atMs, late = false }: { readonly atMs?: number; readonly late?: boolean } = {},
): void {
  if (drafts.length === 0) return;
  let seq = session.last_seq;
  for (const { key, body, digest } of drafts) {
    seq++;
    tx.rows.run(
      "INSERT INTO entry (session_no, seq, key, turn_id, body, digest, at_ms, place, late) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      session.session_no,
      seq,
      key,
      turnId,
      JSON.stringify(body),
      digest,
      atMs,
      seq,
      late ? 1 : 0,
    );
    if (!late) pair(tx, session, turnId, body);
  }
  reviseSession(tx, session, seq, sessionFactsOf(drafts.map(({ body }) => ({ body, atMs }))));
}

/**
 * Archives what a summary replaces. An earlier summary stands where its own basis ended, so it belongs to the basis by
 * its place, though it was appended later.
 */
export function archiveBasis(tx: Transaction, session: SessionRow, throughSeq: number): void {
  tx.rows.run(
    "UPDATE entry SET archived = 1 WHERE session_no = ? AND seq > ? AND place <= ? AND archived = 0",
    session.session_no,
    session.archived_through_seq,
    throughSeq,
  );
  session.archived_through_seq = Math.max(session.archived_through_seq, throughSeq);
}

/** Puts the summary, which is the newest entry, where its basis ended, and counts the compaction. */
export function placeSummary(tx: Transaction, session: SessionRow, throughSeq: number): void {
  tx.rows.run(
    "UPDATE entry SET place = ? WHERE session_no = ? AND seq = ?",
    throughSeq,
    session.session_no,
    session.last_seq,
  );
  session.compaction_count++;
  tx.rows.run(
    "UPDATE session SET compaction_count = ?, archived_through_seq = ? WHERE session_no = ?",
    session.compaction_count,
    session.archived_through_seq,
    session.session_no,
  );
}

function pair(tx: Transaction, session: SessionRow, turnId: string, body: EntryBody): void {
  for (const { callId, name } of callsOf(body)) {
    const opened = tx.rows.run(
      "INSERT INTO call (session_no, turn_id, call_id, name, is_open) VALUES (?, ?, ?, ?, 1) ON CONFLICT DO NOTHING",
      session.session_no,
      turnId,
      callId,
      name,
    );
    if (opened === 0)
      throw storeError("STORE_CONTRACT", `Tool call ${callId} is stored twice in turn ${turnId}.`, { callId });
  }
  if (body.role !== "tool") return;
  const closed = tx.rows.run(
    "UPDATE call SET is_open = 0 WHERE session_no = ? AND turn_id = ? AND call_id = ? AND is_open = 1",
    session.session_no,
    turnId,
    body.callId,
  );
  if (closed === 0)
    throw storeError("STORE_CONTRACT", `A result for tool call ${body.callId} of turn ${turnId} has no open call.`, {
      callId: body.callId,
    });
}

/** Whether an entry would open calls that are new to its turn, or close one that is open (PAIR-1). */
export function isPaired(tx: Transaction, session: SessionRow, turnId: string, body: EntryBody): boolean {
  const call = (callId: string): { readonly is_open: number } | undefined =>
    tx.rows.get<{ is_open: number }>(
      "SELECT is_open FROM call WHERE session_no = ? AND turn_id = ? AND call_id = ?",
      session.session_no,
      turnId,
      callId,
    );
  if (body.role === "tool") return call(body.callId)?.is_open === 1;
  const callIds = callsOf(body).map(({ callId }) => callId);
  return new Set(callIds).size === callIds.length && callIds.every((callId) => call(callId) === undefined);
}

export interface OpenCall {
  readonly callId: string;
  readonly name: string;
}

/** The calls of the turn without a result, in the order in which they were made. */
export function openCalls(tx: Transaction, session: SessionRow, turnId: string): OpenCall[] {
  return tx.rows.all<OpenCall>(
    "SELECT call_id AS callId, name FROM call WHERE session_no = ? AND turn_id = ? AND is_open = 1 ORDER BY call_no",
    session.session_no,
    turnId,
  );
}

/** The turn has ended: nothing more can be paired in it. */
export function forgetCalls(tx: Transaction, session: SessionRow, turnId: string): void {
  tx.rows.run("DELETE FROM call WHERE session_no = ? AND turn_id = ?", session.session_no, turnId);
}
