import { coolDownMsOf, withCoolDown } from "../compaction-health.ts";
import type { CompactionHealth } from "../compaction-health.ts";
import { entryText } from "../entry.ts";
import type { Entry } from "../entry.ts";
import type {
  AppendRequest,
  AppendResult,
  CompactionHealthRequest,
  CompactionHealthResult,
  CompactionRequest,
  CompactionResult,
  LoadOptions,
  SearchOptions,
  SearchPage,
  Transcript,
  TranscriptStore,
} from "../transcript.ts";
import { searchTerms, snippetOf } from "../search-text.ts";
import { checkPairing, unknownDrafts } from "./memory-drafts.ts";
import { storeError } from "./memory-rows.ts";
import type { SessionRow } from "./memory-rows.ts";
import type { MemoryState } from "./memory-state.ts";

const cursorPattern = /^[1-9]\d{0,14}$/;

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
    const { afterSeq, beforeSeq, limit, first } = options;
    if (afterSeq !== undefined) entries = entries.filter((entry) => entry.seq > afterSeq);
    if (beforeSeq !== undefined) entries = entries.filter((entry) => entry.seq < beforeSeq);
    if (limit !== undefined) entries = limit > 0 ? entries.slice(-limit) : [];
    else if (first !== undefined) entries = entries.slice(0, Math.max(0, first));
    return { entries, revision: session.revision, compactionCount: session.compactionCount };
  }

  async append(request: AppendRequest): Promise<AppendResult> {
    const { grant, turnId, entries, settledInputs = [] } = request;
    const known = this.#state.sessions.get(grant.sessionId);
    // Keys before the token: a step that is already there was committed, whoever holds the session now.
    const drafts = known ? unknownDrafts(known, entries) : entries;
    if (known && entries.length > 0 && drafts.length === 0) return { kind: "committed", revision: known.revision };
    if (!this.#state.grantStands(grant)) return { kind: "stale-token" };
    const { session } = this.#state.runningIn(grant.sessionId, turnId);
    checkPairing(session, turnId, drafts);
    for (const { inputId, end } of settledInputs) {
      const input = session.inputs.get(inputId)?.record;
      const isNotice = input?.state === "pending" && input.child !== undefined;
      const isOurs = isNotice || (input !== undefined && input.state !== "pending" && input.turnId === turnId);
      if (!isOurs || (input.state === "settled" && input.end !== end)) {
        throw storeError(
          "STORE_CONTRACT",
          `Input ${inputId} cannot be settled as ${end} by turn ${turnId}: it is ${input?.state ?? "unknown"}.`,
          { inputId },
        );
      }
    }
    this.#state.addEntries(session, turnId, drafts);
    for (const { inputId, end } of settledInputs) {
      const input = session.inputs.get(inputId)?.record;
      if (input?.state === "pending") this.#state.settleNotice(session, input, turnId, end);
      else this.#state.settle(session, inputId, end);
    }
    return { kind: "committed", revision: session.revision };
  }

  async applyCompaction(request: CompactionRequest): Promise<CompactionResult> {
    const { grant, turnId, basis, summary, health } = request;
    const known = this.#state.sessions.get(grant.sessionId);
    if (known && unknownDrafts(known, [summary]).length === 0) return { kind: "applied", revision: known.revision };
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
    session.compactionHealth = health;
    return { kind: "applied", revision: session.revision };
  }

  async compactionHealth(
    sessionId: string,
  ): Promise<{ readonly health?: CompactionHealth; readonly coolDownMs: number }> {
    const health = this.#state.sessions.get(sessionId)?.compactionHealth;
    return { ...(health ? { health } : {}), coolDownMs: coolDownMsOf(health, this.#state.now()) };
  }

  async setCompactionHealth(request: CompactionHealthRequest): Promise<CompactionHealthResult> {
    const { grant, health, coolDownMs } = request;
    if (!this.#state.grantStands(grant)) return { kind: "stale-token" };
    const session = this.#state.sessions.get(grant.sessionId);
    if (!session) return { kind: "set" };
    const isArmed = health !== undefined && coolDownMs !== undefined;
    session.compactionHealth = isArmed
      ? withCoolDown(health, coolDownMs, session.compactionHealth, this.#state.now())
      : health;
    return { kind: "set", ...(session.compactionHealth ? { health: session.compactionHealth } : {}) };
  }

  async search(text: string, options: SearchOptions = {}): Promise<SearchPage> {
    const { sessionId: only, limit = 100, cursor } = options;
    if (cursor !== undefined && !cursorPattern.test(cursor))
      throw storeError("STORE_CONTRACT", `Not a cursor of this search: ${JSON.stringify(cursor)}.`);
    const beforeNo = cursor === undefined ? Number.POSITIVE_INFINITY : Number(cursor);
    const terms = searchTerms(text);
    const found = [...this.#state.sessions.values()].flatMap(({ sessionId, entries, storedNos }) => {
      if (sessionId !== (only ?? sessionId)) return [];
      return entries.flatMap((entry, index) => {
        const storedNo = storedNos[index] ?? 0;
        const snippet = storedNo < beforeNo ? snippetOf(entryText(entry.body), terms) : undefined;
        return snippet === undefined ? [] : [{ storedNo, hit: { sessionId, entry, snippet } }];
      });
    });
    const page = found.toSorted((left, right) => right.storedNo - left.storedNo).slice(0, Math.max(0, limit));
    const last = page.at(-1);
    const hits = page.map(({ hit }) => hit);
    return last && found.length > page.length ? { hits, nextCursor: `${last.storedNo}` } : { hits };
  }
}
