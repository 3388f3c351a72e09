import { callsOf, digestOf, entryText, foldText, sessionFactsOf } from "@turnkeeper/state-store";
import type { Entry, EntryBody, EntryDraft } from "@turnkeeper/state-store";
import { parseJson } from "./json-column.ts";
import type { SessionImage } from "./session-image.ts";
import { reviseSession } from "./session-rows.ts";
import { storeError } from "./store-failure.ts";

export interface EntryRow {
  readonly seq: number;
  readonly key: string;
  readonly turn_id: string;
  readonly body: string;
  readonly digest: string;
  readonly at_ms: number;
  readonly archived: boolean;
  readonly late: boolean;
}

export const entryColumns = "seq, key, turn_id, body, digest, at_ms, archived, late";

/** An entry as a call stores it. */
export interface NewEntryRow extends Omit<EntryRow, "at_ms"> {
  /** Null: the moment of the write. */
  readonly at_ms: number | null;
  readonly place: number;
  readonly folded: string;
}

export interface CallRow {
  readonly turn_id: string;
  readonly call_id: string;
  readonly call_no: number;
  /** JSON. */
  readonly name: string;
  readonly is_open: boolean;
}

export function entryOf(row: EntryRow): Entry {
  return {
    key: row.key,
    body: parseJson<EntryBody>(row.body, () => `entry.body (seq ${row.seq}, key ${row.key})`),
    seq: row.seq,
    turnId: row.turn_id,
    digest: row.digest,
    atMs: row.at_ms,
    archived: row.archived,
    late: row.late,
  };
}

/** The columns that an entry's body says. */
export function bodyColumns(body: EntryBody): Pick<NewEntryRow, "body" | "folded"> {
  return { body: JSON.stringify(body), folded: foldText(entryText(body)) };
}

/** A draft with the digest that tells a retry from other content. */
interface DigestedDraft extends EntryDraft {
  readonly digest: string;
}

/** The drafts that are not stored yet; throws `ENTRY_CONFLICT` on a known key with other content. */
export function unknownDrafts(image: SessionImage, drafts: readonly EntryDraft[]): DigestedDraft[] {
  const seen = new Map<string, string>();
  return drafts.flatMap((draft) => {
    const digest = digestOf(draft.body);
    const known = seen.get(draft.key) ?? image.digestOf(draft.key);
    seen.set(draft.key, digest);
    if (known === undefined) return [{ ...draft, digest }];
    if (known === digest) return [];
    throw storeError(
      "ENTRY_CONFLICT",
      `Entry ${draft.key} of session ${image.sessionId} is stored with other content.`,
      { key: draft.key },
    );
  });
}

/**
 * A draft of the store's own. It is stored whatever happens, since a settlement that failed on a key would leave its
 * session stuck for good: a key that somebody used already gets a number.
 */
export function ownDraft(image: SessionImage, draft: EntryDraft): DigestedDraft {
  let { key } = draft;
  for (let number = 2; image.digestOf(key) !== undefined; number++) key = `${draft.key}/${number}`;
  return { key, body: draft.body, digest: digestOf(draft.body) };
}

export interface AddOptions {
  /** Null: the moment of the write. */
  readonly atMs?: number | null;
  readonly late?: boolean;
  /** For a summary: the last seq of what it replaces. */
  readonly place?: number;
}

/**
 * Stores drafts that are not there yet and opens and closes their calls (PAIR-1), which late ones do not: one more
 * revision.
 */
export function addEntries(
  image: SessionImage,
  turnId: string,
  drafts: readonly DigestedDraft[],
  { atMs = image.stamp, late = false, place }: AddOptions = {},
): void {
  if (drafts.length === 0) return;
  let seq = image.ensureSession().last_seq;
  for (const { key, body, digest } of drafts) {
    seq++;
    image.addEntry({
      seq,
      key,
      turn_id: turnId,
      ...bodyColumns(body),
      digest,
      at_ms: atMs,
      place: place ?? seq,
      archived: false,
      late,
    });
    if (!late) pair(image, turnId, body);
  }
  reviseSession(image, seq, sessionFactsOf(drafts.map(({ body }) => ({ body, atMs: atMs ?? 0 }))), atMs);
}

/** Archives what a summary up to here replaces. */
export function archiveBasis(image: SessionImage, throughSeq: number): void {
  const row = image.ensureSession();
  image.archive(row.archived_through_seq, throughSeq);
  image.putSession({
    ...row,
    compaction_count: row.compaction_count + 1,
    archived_through_seq: Math.max(row.archived_through_seq, throughSeq),
  });
}

function pair(image: SessionImage, turnId: string, body: EntryBody): void {
  for (const { callId, name } of callsOf(body)) {
    if (image.call(turnId, callId))
      throw storeError("STORE_CONTRACT", `Tool call ${callId} is stored twice in turn ${turnId}.`, { callId });
    image.putCall({
      turn_id: turnId,
      call_id: callId,
      call_no: image.nextCallNo,
      name: JSON.stringify(name),
      is_open: true,
    });
  }
  if (body.role !== "tool") return;
  const call = image.call(turnId, body.callId);
  if (!call?.is_open)
    throw storeError("STORE_CONTRACT", `A result for tool call ${body.callId} of turn ${turnId} has no open call.`, {
      callId: body.callId,
    });
  image.putCall({ ...call, is_open: false });
}

/** Whether an entry would open calls that are new to its turn, or close one that is open (PAIR-1). */
export function isPaired(image: SessionImage, turnId: string, body: EntryBody): boolean {
  if (body.role === "tool") return image.call(turnId, body.callId)?.is_open === true;
  const callIds = callsOf(body).map(({ callId }) => callId);
  return (
    new Set(callIds).size === callIds.length && callIds.every((callId) => image.call(turnId, callId) === undefined)
  );
}

export interface OpenCall {
  readonly callId: string;
  readonly name: string;
}

/** The calls of the turn without a result, in the order in which they were made. */
export function openCalls(image: SessionImage, turnId: string): OpenCall[] {
  return image.calls
    .filter((call) => call.turn_id === turnId && call.is_open)
    .map((call) => ({ callId: call.call_id, name: parseJson<string>(call.name, "call.name") }));
}
