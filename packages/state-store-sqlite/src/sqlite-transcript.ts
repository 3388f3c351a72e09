import { entryText } from "@turnkeeper/state-store";
import type {
  AppendRequest,
  AppendResult,
  CompactionRequest,
  CompactionResult,
  InputEnd,
  LoadOptions,
  SearchHit,
  Transcript,
  TranscriptStore,
} from "@turnkeeper/state-store";
import { addEntries, archiveBasis, entryColumns, entryOf, placeSummary, unknownDrafts } from "./entry-rows.ts";
import type { EntryRow } from "./entry-rows.ts";
import { findInput, inputRecord } from "./input-rows.ts";
import { grantStands } from "./lease-rows.ts";
import { findSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { sessionRunning, settleInput } from "./settlement.ts";
import { storeError } from "./store-failure.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { Transaction } from "./transaction.ts";

/** Where the newest so many come from: the end. */
const noLimit = -1;
const hitsMax = 100;

function load(tx: Transaction, sessionId: string, options: LoadOptions): Transcript {
  const session = findSession(tx, sessionId);
  if (!session) return { entries: [], revision: 0, compactionCount: 0 };
  const { turnId, limit } = options;
  const afterSeq = Math.max(options.afterSeq ?? 0, options.all ? 0 : session.archived_through_seq);
  // Without a summary both orders are one, and the newest few are found without sorting all.
  const order = options.all || session.compaction_count === 0 ? "seq DESC" : "place DESC, seq DESC";
  const rows = tx.rows.all<EntryRow>(
    `SELECT ${entryColumns} FROM entry WHERE session_no = ? AND seq > ?
       ${options.all ? "" : "AND archived = 0 AND late = 0"} ${turnId === undefined ? "" : "AND turn_id = ?"}
     ORDER BY ${order} LIMIT ?`,
    session.session_no,
    afterSeq,
    ...(turnId === undefined ? [] : [turnId]),
    limit === undefined ? noLimit : Math.max(0, limit),
  );
  return {
    entries: rows.toReversed().map(entryOf),
    revision: session.revision,
    compactionCount: session.compaction_count,
  };
}

/** A turn settles inputs that it took itself, once: repeated with the same end it is the same settlement (APPEND-2). */
function checkSettleable(tx: Transaction, session: SessionRow, turnId: string, inputId: string, end: InputEnd): void {
  const row = findInput(tx, session, inputId);
  const input = row && inputRecord(session.session_id, row);
  const isOurs = input !== undefined && input.state !== "pending" && input.turnId === turnId;
  if (!isOurs || (input.state === "settled" && input.end !== end))
    throw storeError(
      "STORE_CONTRACT",
      `Input ${inputId} cannot be settled as ${end} by turn ${turnId}: it is ${input?.state ?? "unknown"}.`,
      { inputId },
    );
}

function append(tx: Transaction, request: AppendRequest): AppendResult {
  const { grant, turnId, entries, settledInputs = [] } = request;
  const known = findSession(tx, grant.sessionId);
  // Keys before the token: a step that is already there was committed, whoever holds the session now.
  const drafts = known ? unknownDrafts(tx, known, entries) : [];
  if (known && entries.length > 0 && drafts.length === 0) return { kind: "committed", revision: known.revision };
  if (!grantStands(tx, grant)) return { kind: "stale-token" };
  const session = sessionRunning(tx, known, grant, turnId);
  addEntries(tx, session, turnId, drafts);
  for (const { inputId, end } of settledInputs) {
    checkSettleable(tx, session, turnId, inputId, end);
    settleInput(tx, session, inputId, end);
  }
  return { kind: "committed", revision: session.revision };
}

function applyCompaction(tx: Transaction, request: CompactionRequest): CompactionResult {
  const { grant, turnId, basis, summary } = request;
  const known = findSession(tx, grant.sessionId);
  const drafts = known ? unknownDrafts(tx, known, [summary]) : [];
  if (known && drafts.length === 0) return { kind: "applied", revision: known.revision };
  if (!grantStands(tx, grant)) return { kind: "stale-token" };
  const session = sessionRunning(tx, known, grant, turnId);
  if (session.compaction_count !== basis.compactionCount) return { kind: "stale-basis" };
  archiveBasis(tx, session, basis.throughSeq);
  addEntries(tx, session, turnId, drafts);
  placeSummary(tx, session, basis.throughSeq);
  return { kind: "applied", revision: session.revision };
}

/** Reads every entry it may find: words are not indexed, so that no write pays for a search. */
function search(
  tx: Transaction,
  text: string,
  options: { readonly sessionId?: string; readonly limit?: number },
): SearchHit[] {
  const wanted = text.toLowerCase();
  const hits: SearchHit[] = [];
  const rows = tx.rows.iterate<EntryRow & { readonly session_id: string }>(
    `SELECT session_id, ${entryColumns} FROM session JOIN entry USING (session_no)
     WHERE session_id = coalesce(?, session_id) ORDER BY session_no, seq`,
    options.sessionId ?? null,
  );
  for (const row of rows) {
    const entry = entryOf(row);
    if (entryText(entry.body).toLowerCase().includes(wanted)) hits.push({ sessionId: row.session_id, entry });
  }
  hits.sort((left, right) => right.entry.atMs - left.entry.atMs || right.entry.seq - left.entry.seq);
  return hits.slice(0, options.limit ?? hitsMax);
}

export class SqliteTranscript implements TranscriptStore {
  readonly #handle: StoreHandle;

  constructor(handle: StoreHandle) {
    this.#handle = handle;
  }

  load(sessionId: string, options: LoadOptions = {}): Promise<Transcript> {
    return this.#handle.read(`load session ${sessionId}`, (tx) => load(tx, sessionId, options));
  }

  append(request: AppendRequest): Promise<AppendResult> {
    return this.#handle.write("turn-data", `append to session ${request.grant.sessionId}`, (tx) => append(tx, request));
  }

  applyCompaction(request: CompactionRequest): Promise<CompactionResult> {
    return this.#handle.write("turn-data", `compact session ${request.grant.sessionId}`, (tx) =>
      applyCompaction(tx, request),
    );
  }

  search(
    text: string,
    options: { readonly sessionId?: string; readonly limit?: number } = {},
  ): Promise<readonly SearchHit[]> {
    return this.#handle.read("search the store", (tx) => search(tx, text, options));
  }
}
