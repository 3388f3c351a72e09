import { importOf } from "../import.ts";
import type {
  ImportResult,
  SessionPage,
  SessionRecord,
  SessionRecords,
  SessionStore,
  SessionToken,
  UnchangedRequest,
} from "../session.ts";
import { sessionFactsOf } from "../session-facts.ts";
import { titleOf } from "../title.ts";
import { tellParent } from "./memory-children.ts";
import { addImported } from "./memory-import.ts";
import { storeError } from "./memory-rows.ts";
import type { SessionRow } from "./memory-rows.ts";
import type { MemoryState } from "./memory-state.ts";

function recordOf(row: SessionRow): SessionRecord {
  const { sessionId, createdAtMs, updatedAtMs, revision, entries, lastSeq, givenTitle, turns, parent } = row;
  const { firstText = "", lastEntry, ...sums } = sessionFactsOf(entries);
  const title = givenTitle === "" ? titleOf(firstText) : givenTitle;
  return {
    sessionId,
    createdAtMs,
    updatedAtMs,
    revision,
    entryCount: lastSeq,
    ...(title === "" ? {} : { title }),
    ...(lastEntry ? { lastEntry } : {}),
    totals: { turnCount: turns.size, ...sums },
    ...(parent ? { parent } : {}),
  };
}

const order = (
  left: Pick<SessionRecord, "updatedAtMs" | "sessionId">,
  right: Pick<SessionRecord, "updatedAtMs" | "sessionId">,
): number => right.updatedAtMs - left.updatedAtMs || (left.sessionId < right.sessionId ? -1 : 1);

const cursorPattern = /^(\d+)\/(.+)$/;

export class MemorySessions implements SessionStore {
  readonly #state: MemoryState;

  constructor(state: MemoryState) {
    this.#state = state;
  }

  async nowMs(): Promise<number> {
    return this.#state.wallMs();
  }

  async read(sessionId: string): Promise<SessionRecord | undefined> {
    const row = this.#state.sessions.get(sessionId);
    return row && recordOf(row);
  }

  async list(options: { readonly limit?: number; readonly cursor?: string } = {}): Promise<SessionPage> {
    const limit = options.limit ?? 100;
    let sessions = [...this.#state.sessions.values()].map(recordOf).toSorted(order);
    if (options.cursor !== undefined) {
      const [, updatedAt, sessionId] = cursorPattern.exec(options.cursor) ?? [];
      if (updatedAt === undefined || sessionId === undefined)
        throw storeError("STORE_CONTRACT", `Not a cursor of this list: ${JSON.stringify(options.cursor)}.`);
      const last = { updatedAtMs: Number(updatedAt), sessionId };
      sessions = sessions.filter((record) => order(last, record) < 0 && record.sessionId !== sessionId);
    }
    const page = sessions.slice(0, limit);
    const last = page.at(-1);
    if (!last || sessions.length <= limit) return { sessions: page };
    return { sessions: page, nextCursor: `${last.updatedAtMs}/${last.sessionId}` };
  }

  async records(
    sessionId: string,
    { withoutEntries = false }: { readonly withoutEntries?: boolean } = {},
  ): Promise<SessionRecords | undefined> {
    const row = this.#state.sessions.get(sessionId);
    if (!row) return undefined;
    const lease = this.#state.leaseView(sessionId);
    return {
      session: recordOf(row),
      fencingToken: this.#state.leases.get(sessionId)?.fencingToken ?? 0,
      ...(lease ? { lease } : {}),
      inputs: [...row.inputs.values()].map(({ record }) => record).toSorted((left, right) => left.seq - right.seq),
      turns: [...row.turns.values()].toSorted((left, right) => left.fencingToken - right.fencingToken),
      compactionCount: row.compactionCount,
      summaries: row.entries.flatMap(({ key, seq }) => {
        const throughSeq = row.summaryPlace.get(key);
        return throughSeq === undefined || throughSeq === seq ? [] : [{ seq, throughSeq }];
      }),
      entries: withoutEntries ? [] : [...row.entries],
    };
  }

  async importSession(records: SessionRecords): Promise<ImportResult> {
    const { sessionId } = records.session;
    const imported = importOf(structuredClone(records), this.#state.wallMs());
    if (this.#state.sessions.has(sessionId)) return { kind: "exists" };
    const lease = this.#state.leaseView(sessionId);
    if (lease && lease.standing !== "expired") return { kind: "held", lease };
    return { kind: "imported", session: recordOf(addImported(this.#state, imported)) };
  }

  async tokens({ after = "", limit = 1000 }: { readonly after?: string; readonly limit?: number } = {}): Promise<
    readonly SessionToken[]
  > {
    const byBytes = (left: string, right: string): number => Buffer.compare(Buffer.from(left), Buffer.from(right));
    return [...this.#state.leases]
      .filter(([sessionId]) => byBytes(sessionId, after) > 0)
      .toSorted(([left], [right]) => byBytes(left, right))
      .slice(0, limit)
      .map(([sessionId, { fencingToken }]) => ({ sessionId, fencingToken }));
  }

  async raiseToken({ sessionId, fencingToken }: SessionToken): ReturnType<SessionStore["raiseToken"]> {
    if ((this.#state.leases.get(sessionId)?.fencingToken ?? 0) >= fencingToken) return { kind: "stands" };
    const lease = this.#state.leaseView(sessionId);
    if (lease) return { kind: "held", lease };
    this.#state.leases.set(sessionId, { fencingToken });
    return { kind: "stands" };
  }

  async setTitle(
    sessionId: string,
    title: string,
    { ifUnnamed = false }: { readonly ifUnnamed?: boolean } = {},
  ): ReturnType<SessionStore["setTitle"]> {
    const row = this.#state.sessions.get(sessionId);
    if (!row) return { kind: "unknown" };
    if (ifUnnamed && row.givenTitle !== "") return { kind: "named" };
    row.givenTitle = titleOf(title);
    row.updatedAtMs = this.#state.wallMs();
    return { kind: "set" };
  }

  async unchanged({ prefix, sinceMs, limit, after = "" }: UnchangedRequest): Promise<readonly string[]> {
    return [...this.#state.sessions.values()]
      .filter((row) => row.sessionId.startsWith(prefix) && row.sessionId > after && row.updatedAtMs <= sinceMs)
      .map(({ sessionId }) => sessionId)
      .toSorted((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)))
      .slice(0, limit);
  }

  #isInUse(session: SessionRow, sinceMs: number): boolean {
    const isOpen = this.#state.openTurn(session) !== undefined;
    return session.updatedAtMs > sinceMs || isOpen || this.#state.queueOf(session).length > 0;
  }

  async delete(
    sessionId: string,
    { ifUnchangedSinceMs }: { readonly ifUnchangedSinceMs?: number } = {},
  ): ReturnType<SessionStore["delete"]> {
    const lease = this.#state.leaseView(sessionId);
    if (lease && lease.standing !== "expired") return { kind: "held", lease };
    const session = this.#state.sessions.get(sessionId);
    if (!session) return { kind: "unknown" };
    if (ifUnchangedSinceMs !== undefined && this.#isInUse(session, ifUnchangedSinceMs)) return { kind: "in-use" };
    // The processes of a turn that nobody ended outlive its session.
    this.#state.settleCrashed(sessionId);
    tellParent(this.#state, session, { outcome: "failed", reason: "deleted" });
    this.#state.sessions.delete(sessionId);
    this.#state.spool.delete(sessionId);
    // A late write of an expired holder must find its grant gone, so the token rises with the deletion.
    const row = this.#state.leases.get(sessionId);
    if (row) this.#state.leases.set(sessionId, { fencingToken: row.fencingToken + (row.held ? 1 : 0) });
    return { kind: "deleted" };
  }
}
