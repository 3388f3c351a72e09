import { entryText } from "../entry.ts";
import type { Entry } from "../entry.ts";
import type {
  AppendRequest,
  AppendResult,
  CompactionRequest,
  CompactionResult,
  LoadOptions,
  SearchHit,
  Transcript,
  TranscriptStore,
} from "../transcript.ts";
import { storeError } from "./memory-state.ts";
import type { MemoryState, SessionRow } from "./memory-state.ts";

/** A summary stands where its basis ended, though it was appended later: by place it is shown, and replaced. */
function placeOf(session: SessionRow, entry: Entry): number {
  return session.summaryPlace.get(entry.key) ?? entry.seq;
}

function inContextOrder(session: SessionRow): Entry[] {
  return session.entries
    .filter((entry) => !entry.archived && !entry.late)
    .toSorted((left, right) => placeOf(session, left) - placeOf(session, right));
}

export class MemoryTranscript implements TranscriptStore {
  readonly #state: MemoryState;

  constructor(state: MemoryState) {
    this.#state = state;
  }

  async load(sessionId: string, options: LoadOptions = {}): Promise<Transcript> {
    const session = this.#state.sessions.get(sessionId);
    if (!session) return { entries: [], revision: 0, compactionCount: 0 };
    let entries = options.all ? [...session.entries] : inContextOrder(session);
    if (options.turnId !== undefined) entries = entries.filter((entry) => entry.turnId === options.turnId);
    const { afterSeq, limit } = options;
    if (afterSeq !== undefined) entries = entries.filter((entry) => entry.seq > afterSeq);
    if (limit !== undefined) entries = limit > 0 ? entries.slice(-limit) : [];
    return { entries, revision: session.revision, compactionCount: session.compactionCount };
  }

  async append(request: AppendRequest): Promise<AppendResult> {
    const { grant, turnId, entries, settledInputs = [] } = request;
    const known = this.#state.sessions.get(grant.sessionId);
    // Keys before the token: a step that is already there was committed, whoever holds the session now.
    const drafts = known ? this.#state.unknownDrafts(known, entries) : entries;
    if (known && entries.length > 0 && drafts.length === 0) return { kind: "committed", revision: known.revision };
    if (!this.#state.grantStands(grant)) return { kind: "stale-token" };
    const { session } = this.#state.runningIn(grant.sessionId, turnId);
    this.#state.checkPairing(session, turnId, drafts);
    for (const { inputId, end } of settledInputs) {
      const input = session.inputs.get(inputId)?.record;
      const isOurs = input !== undefined && input.state !== "pending" && input.turnId === turnId;
      if (!isOurs || (input.state === "settled" && input.end !== end)) {
        throw storeError(
          "STORE_CONTRACT",
          `Input ${inputId} cannot be settled as ${end} by turn ${turnId}: it is ${input?.state ?? "unknown"}.`,
          { inputId },
        );
      }
    }
    this.#state.addEntries(session, turnId, drafts);
    for (const { inputId, end } of settledInputs) this.#state.settle(session, inputId, end);
    return { kind: "committed", revision: session.revision };
  }

  async applyCompaction(request: CompactionRequest): Promise<CompactionResult> {
    const { grant, turnId, basis, summary } = request;
    const known = this.#state.sessions.get(grant.sessionId);
    if (known && this.#state.unknownDrafts(known, [summary]).length === 0)
      return { kind: "applied", revision: known.revision };
    if (!this.#state.grantStands(grant)) return { kind: "stale-token" };
    const { session } = this.#state.runningIn(grant.sessionId, turnId);
    if (session.compactionCount !== basis.compactionCount) return { kind: "stale-basis" };
    for (const [index, entry] of session.entries.entries()) {
      const isBasis = !entry.archived && placeOf(session, entry) <= basis.throughSeq;
      if (isBasis) session.entries[index] = { ...entry, archived: true };
    }
    this.#state.addEntries(session, turnId, [summary]);
    session.summaryPlace.set(summary.key, basis.throughSeq);
    session.compactionCount++;
    return { kind: "applied", revision: session.revision };
  }

  async search(
    text: string,
    options: { readonly sessionId?: string; readonly limit?: number } = {},
  ): Promise<readonly SearchHit[]> {
    const wanted = text.toLowerCase();
    const hits: SearchHit[] = [];
    for (const session of this.#state.sessions.values()) {
      if (options.sessionId !== undefined && options.sessionId !== session.sessionId) continue;
      for (const entry of session.entries) {
        if (entryText(entry.body).toLowerCase().includes(wanted)) hits.push({ sessionId: session.sessionId, entry });
      }
    }
    hits.sort((left, right) => right.entry.atMs - left.entry.atMs || right.entry.seq - left.entry.seq);
    return hits.slice(0, options.limit ?? 100);
  }
}
