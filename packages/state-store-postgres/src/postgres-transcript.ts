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
import { healthView, setCompactionHealth, storeCompactionHealth } from "./compaction-health-column.ts";
import { addEntries, archiveBasis, unknownDrafts } from "./entry-rows.ts";
import { searchEntries } from "./entry-search.ts";
import { loadWindow } from "./entry-window.ts";
import { inputRecord, settleInput } from "./input-rows.ts";
import { isGrantOf, serverBootId } from "./lease-rows.ts";
import type { Server } from "./server.ts";
import type { SessionImage } from "./session-image.ts";
import type { SessionWrites } from "./session-writes.ts";
import { mustRun, settleNotice } from "./settlement.ts";
import { storeError } from "./store-failure.ts";

/**
 * A turn settles inputs that it took itself, and notices of its children, once: repeated with the same end it is the
 * same settlement (APPEND-2).
 */
function settleOwn(image: SessionImage, turnId: string, inputId: string, end: InputEnd): void {
  const row = image.input(inputId);
  const input = row && inputRecord(image.sessionId, row);
  if (input?.state === "pending" && input.child) return settleNotice(image, inputId, turnId, end);
  const isOurs = input !== undefined && input.state !== "pending" && input.turnId === turnId;
  if (!isOurs || (input.state === "settled" && input.end !== end))
    throw storeError(
      "STORE_CONTRACT",
      `Input ${inputId} cannot be settled as ${end} by turn ${turnId}: it is ${input?.state ?? "unknown"}.`,
      { inputId },
    );
  settleInput(image, inputId, end);
}

function append(image: SessionImage, request: AppendRequest): AppendResult {
  const { grant, turnId, entries, settledInputs = [] } = request;
  // Keys before the token: a step that is already there was committed, whoever holds the session now.
  const drafts = image.session ? unknownDrafts(image, entries) : [];
  if (image.session && entries.length > 0 && drafts.length === 0)
    return { kind: "committed", revision: image.session.revision };
  if (!isGrantOf(image.lease, grant)) return { kind: "stale-token" };
  mustRun(image, grant, turnId);
  addEntries(image, turnId, drafts);
  for (const { inputId, end } of settledInputs) settleOwn(image, turnId, inputId, end);
  return { kind: "committed", revision: image.session?.revision ?? 0 };
}

function applyCompaction(image: SessionImage, request: CompactionRequest): CompactionResult {
  const { grant, turnId, basis, summary, health } = request;
  const drafts = image.session ? unknownDrafts(image, [summary]) : [];
  if (image.session && drafts.length === 0) return { kind: "applied", revision: image.session.revision };
  if (!isGrantOf(image.lease, grant)) return { kind: "stale-token" };
  mustRun(image, grant, turnId);
  if (image.session?.compaction_count !== basis.compactionCount) return { kind: "stale-basis" };
  archiveBasis(image, basis.throughSeq);
  addEntries(image, turnId, drafts, { place: basis.throughSeq });
  storeCompactionHealth(image, health);
  return { kind: "applied", revision: image.session.revision };
}

export class PostgresTranscript implements TranscriptStore {
  readonly #server: Server;
  readonly #writes: SessionWrites;

  constructor(server: Server, writes: SessionWrites) {
    this.#server = server;
    this.#writes = writes;
  }

  load(sessionId: string, options: LoadOptions = {}): Promise<Transcript> {
    return loadWindow(this.#server, sessionId, options);
  }

  append(request: AppendRequest): Promise<AppendResult> {
    const { grant, turnId, entries, settledInputs = [] } = request;
    return this.#writes.write({
      sessionId: grant.sessionId,
      attempt: `append to session ${grant.sessionId}`,
      kind: "turn-data",
      isRepeatable: true,
      reading: {
        keys: entries.map(({ key }) => key),
        turnIds: [turnId],
        inputIds: settledInputs.map(({ inputId }) => inputId),
      },
      decide: (image) => append(image, request),
    });
  }

  applyCompaction(request: CompactionRequest): Promise<CompactionResult> {
    const { grant, turnId, summary } = request;
    return this.#writes.write({
      sessionId: grant.sessionId,
      attempt: `compact session ${grant.sessionId}`,
      kind: "turn-data",
      isRepeatable: true,
      reading: { keys: [summary.key], turnIds: [turnId] },
      decide: (image) => applyCompaction(image, request),
    });
  }

  async compactionHealth(
    sessionId: string,
  ): Promise<{ readonly health?: CompactionHealth; readonly coolDownMs: number }> {
    const { schema } = this.#server;
    const [row] = await this.#server.read<{ compaction_health: string | null; clock_ms: number }>(
      `read how compactions of session ${sessionId} fared`,
      `SELECT compaction_health, ${schema}.clock_ms() FROM ${schema}.session WHERE session_id = $1`,
      [sessionId],
    );
    return healthView(row, { bootId: serverBootId, bootMs: row?.clock_ms ?? 0 });
  }

  setCompactionHealth(request: CompactionHealthRequest): Promise<CompactionHealthResult> {
    return this.#writes.write({
      sessionId: request.grant.sessionId,
      attempt: `note how a compaction of session ${request.grant.sessionId} fared`,
      kind: "ordinary",
      isRepeatable: true,
      decide: (image) => setCompactionHealth(image, request),
    });
  }

  search(text: string, options: SearchOptions = {}): Promise<SearchPage> {
    return searchEntries(this.#server, text, options);
  }
}
