import type { Host } from "@turnkeeper/kernel";
import type {
  AppendRequest,
  AppendResult,
  CompactionHealth,
  CompactionHealthRequest,
  CompactionHealthResult,
  CompactionRequest,
  CompactionResult,
  InputEnd,
  LoadOptions,
  SearchOptions,
  SearchPage,
  Transcript,
  TranscriptStore,
} from "@turnkeeper/state-store";
import { readCompactionHealth, setCompactionHealth, storeCompactionHealth } from "./compaction-health-column.ts";
import { addEntries, archiveBasis, placeSummary, unknownDrafts } from "./entry-rows.ts";
import { EntrySearch } from "./entry-search.ts";
import { loadWindow } from "./entry-window.ts";
import { findInput, inputRecord } from "./input-rows.ts";
import { grantStands } from "./lease-rows.ts";
import { findSession } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import { sessionRunning, settleInput, settleNotice } from "./settlement.ts";
import { storeError } from "./store-failure.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { Transaction } from "./transaction.ts";

/**
 * A turn settles inputs that it took itself, and notices of its children, once: repeated with the same end it is the
 * same settlement (APPEND-2).
 */
function settleByStep(tx: Transaction, session: SessionRow, turnId: string, inputId: string, end: InputEnd): void {
  const row = findInput(tx, session, inputId);
  const input = row && inputRecord(session.session_id, row);
  if (input?.state === "pending" && input.child) return settleNotice(tx, session, inputId, turnId, end);
  const isOurs = input !== undefined && input.state !== "pending" && input.turnId === turnId;
  if (!isOurs || (input.state === "settled" && input.end !== end))
    throw storeError(
      "STORE_CONTRACT",
      `Input ${inputId} cannot be settled as ${end} by turn ${turnId}: it is ${input?.state ?? "unknown"}.`,
      { inputId },
    );
  settleInput(tx, session, inputId, end);
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
  for (const { inputId, end } of settledInputs) settleByStep(tx, session, turnId, inputId, end);
  return { kind: "committed", revision: session.revision };
}

function applyCompaction(tx: Transaction, request: CompactionRequest): CompactionResult {
  const { grant, turnId, basis, summary, health } = request;
  const known = findSession(tx, grant.sessionId);
  const drafts = known ? unknownDrafts(tx, known, [summary]) : [];
  if (known && drafts.length === 0) return { kind: "applied", revision: known.revision };
  if (!grantStands(tx, grant)) return { kind: "stale-token" };
  const session = sessionRunning(tx, known, grant, turnId);
  if (session.compaction_count !== basis.compactionCount) return { kind: "stale-basis" };
  archiveBasis(tx, session, basis.throughSeq);
  addEntries(tx, session, turnId, drafts);
  placeSummary(tx, session, basis.throughSeq);
  storeCompactionHealth(tx, session, health);
  return { kind: "applied", revision: session.revision };
}

export class SqliteTranscript implements TranscriptStore {
  readonly #handle: StoreHandle;
  readonly #search: EntrySearch;

  constructor(handle: StoreHandle, host: Host) {
    this.#handle = handle;
    this.#search = new EntrySearch(handle, host);
  }

  load(sessionId: string, options: LoadOptions = {}): Promise<Transcript> {
    return this.#handle.read(`load session ${sessionId}`, (tx) => loadWindow(tx, sessionId, options));
  }

  append(request: AppendRequest): Promise<AppendResult> {
    return this.#handle.write("turn-data", `append to session ${request.grant.sessionId}`, (tx) => append(tx, request));
  }

  applyCompaction(request: CompactionRequest): Promise<CompactionResult> {
    return this.#handle.write("turn-data", `compact session ${request.grant.sessionId}`, (tx) =>
      applyCompaction(tx, request),
    );
  }

  compactionHealth(sessionId: string): Promise<{ readonly health?: CompactionHealth; readonly coolDownMs: number }> {
    return this.#handle.read(`read how compactions of session ${sessionId} fared`, (tx) =>
      readCompactionHealth(tx, sessionId),
    );
  }

  setCompactionHealth(request: CompactionHealthRequest): Promise<CompactionHealthResult> {
    return this.#handle.write("ordinary", `note how a compaction of session ${request.grant.sessionId} fared`, (tx) =>
      setCompactionHealth(tx, request),
    );
  }

  search(text: string, options: SearchOptions = {}): Promise<SearchPage> {
    return this.#search.search(text, options);
  }
}
