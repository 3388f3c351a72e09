import type { Host } from "@turnkeeper/kernel";
import { importOf, titleOf } from "@turnkeeper/state-store";
import type {
  ImportResult,
  SessionPage,
  SessionRecord,
  SessionRecords,
  SessionStore,
  SessionToken,
  SummaryPlace,
  UnchangedRequest,
} from "@turnkeeper/state-store";
import { tellParent } from "./child-rows.ts";
import { entryColumns, entryOf } from "./entry-rows.ts";
import type { EntryRow } from "./entry-rows.ts";
import { insertImported } from "./imported-rows.ts";
import { inputRecord, queueOf } from "./input-rows.ts";
import type { InputRow } from "./input-rows.ts";
import { findLease, findLeaseView, freeLease, isHeld, leaseView } from "./lease-rows.ts";
import { forgetSession } from "./search-index.ts";
import { findListedSession, findSession, minuteOf, sessionRecord, setTitle } from "./session-rows.ts";
import type { ListedSessionRow, SessionRow } from "./session-rows.ts";
import { settleCrashed } from "./settlement.ts";
import type { SpoolFolder } from "./spool-folder.ts";
import { storeError } from "./store-failure.ts";
import type { StoreHandle } from "./store-handle.ts";
import type { Transaction } from "./transaction.ts";
import { findOpenTurn, turnRecord } from "./turn-rows.ts";
import type { TurnRow } from "./turn-rows.ts";

const pageSize = 100;

const tokenPageSize = 1000;

/** The last session of a page; the next page begins behind it, whatever changed since. */
const cursorPattern = /^(\d+(?:\.\d+)?)\/(.+)$/;

interface Position {
  readonly updatedAtMs: number;
  readonly sessionId: string;
}

const beforeAll: Position = { updatedAtMs: Number.MAX_VALUE, sessionId: "" };

function positionOf(cursor: string): Position {
  const [, updatedAt, sessionId] = cursorPattern.exec(cursor) ?? [];
  if (updatedAt === undefined || sessionId === undefined)
    throw storeError("STORE_CONTRACT", `Not a cursor of this list: ${JSON.stringify(cursor)}.`);
  return { updatedAtMs: Number(updatedAt), sessionId };
}

function list(tx: Transaction, options: { readonly limit?: number; readonly cursor?: string }): SessionPage {
  const limit = Math.max(0, options.limit ?? pageSize);
  const after = options.cursor === undefined ? beforeAll : positionOf(options.cursor);
  // One more than the page tells whether there is a next one.
  const rows = tx.rows.all<ListedSessionRow>(
    `SELECT * FROM session WHERE updated_minute <= ? AND updated_at_ms <= ? AND (updated_at_ms < ? OR session_id > ?)
     ORDER BY updated_minute DESC, updated_at_ms DESC, session_id LIMIT ?`,
    minuteOf(after.updatedAtMs),
    after.updatedAtMs,
    after.updatedAtMs,
    after.sessionId,
    limit + 1,
  );
  const sessions = rows.slice(0, limit).map(sessionRecord);
  const last = sessions.at(-1);
  if (!last || rows.length <= limit) return { sessions };
  return { sessions, nextCursor: `${last.updatedAtMs}/${last.sessionId}` };
}

function records(tx: Transaction, sessionId: string, withoutEntries: boolean): SessionRecords | undefined {
  const session = findListedSession(tx, sessionId);
  if (!session) return undefined;
  const row = findLease(tx, sessionId);
  const lease = leaseView(tx, sessionId, row);
  const no = session.session_no;
  const inputs = tx.rows.all<InputRow>("SELECT * FROM input WHERE session_no = ? ORDER BY seq", no);
  const turns = tx.rows.all<TurnRow>("SELECT * FROM turn WHERE session_no = ? ORDER BY fencing_token, turn_no", no);
  const entries = withoutEntries
    ? []
    : tx.rows.all<EntryRow>(`SELECT ${entryColumns} FROM entry WHERE session_no = ? ORDER BY seq`, no);
  return {
    session: sessionRecord(session),
    fencingToken: row?.fencing_token ?? 0,
    ...(lease ? { lease } : {}),
    inputs: inputs.map((input) => inputRecord(sessionId, input)),
    turns: turns.map((turn) => turnRecord(sessionId, turn)),
    compactionCount: session.compaction_count,
    summaries: tx.rows.all<SummaryPlace>(
      "SELECT seq, place AS throughSeq FROM entry WHERE session_no = ? AND place <> seq ORDER BY seq",
      no,
    ),
    entries: entries.map(entryOf),
  };
}

function unchanged(tx: Transaction, { prefix, sinceMs, limit, after = "" }: UnchangedRequest): readonly string[] {
  // No id has a character behind the tilde, so the range is all that begin so.
  const rows = tx.rows.all<{ session_id: string }>(
    `SELECT session_id FROM session WHERE session_id >= ? AND session_id < ? AND session_id > ? AND updated_at_ms <= ?
     ORDER BY session_id LIMIT ?`,
    prefix,
    `${prefix}\u007f`,
    after,
    sinceMs,
    limit,
  );
  return rows.map(({ session_id }) => session_id);
}

function isInUse(tx: Transaction, session: SessionRow, sinceMs: number): boolean {
  return session.updated_at_ms > sinceMs || findOpenTurn(tx, session) !== undefined || queueOf(tx, session).length > 0;
}

function remove(
  tx: Transaction,
  sessionId: string,
  ifUnchangedSinceMs: number | undefined,
): Awaited<ReturnType<SessionStore["delete"]>> {
  const row = findLease(tx, sessionId);
  const lease = leaseView(tx, sessionId, row);
  if (lease && lease.standing !== "expired") return { kind: "held", lease };
  const session = findSession(tx, sessionId);
  if (!session) return { kind: "unknown" };
  if (ifUnchangedSinceMs !== undefined && isInUse(tx, session, ifUnchangedSinceMs)) return { kind: "in-use" };
  // The processes of a turn that nobody ended outlive its session.
  settleCrashed(tx, session);
  tellParent(tx, session, { outcome: "failed", reason: "deleted" });
  tx.rows.run("DELETE FROM session WHERE session_no = ?", session.session_no);
  forgetSession(tx, session.session_no);
  // A late write of an expired holder must find its grant gone, so the token rises with the deletion.
  if (isHeld(row)) freeLease(tx, { sessionId, holderId: row.holder_id, fencingToken: row.fencing_token }, 1);
  return { kind: "deleted" };
}

function raiseToken(
  tx: Transaction,
  { sessionId, fencingToken }: SessionToken,
): Awaited<ReturnType<SessionStore["raiseToken"]>> {
  const row = findLease(tx, sessionId);
  if ((row?.fencing_token ?? 0) >= fencingToken) return { kind: "stands" };
  const lease = leaseView(tx, sessionId, row);
  if (lease) return { kind: "held", lease };
  tx.rows.run(
    `INSERT INTO lease (session_id, fencing_token) VALUES (?, ?)
     ON CONFLICT (session_id) DO UPDATE SET fencing_token = excluded.fencing_token`,
    sessionId,
    fencingToken,
  );
  return { kind: "stands" };
}

export class SqliteSessions implements SessionStore {
  readonly #handle: StoreHandle;
  readonly #spool: SpoolFolder;
  readonly #host: Host;

  constructor(handle: StoreHandle, spool: SpoolFolder, host: Host) {
    this.#handle = handle;
    this.#spool = spool;
    this.#host = host;
  }

  nowMs(): Promise<number> {
    return this.#handle.read("read the time", () => this.#host.clock.wallMs());
  }

  read(sessionId: string): Promise<SessionRecord | undefined> {
    return this.#handle.read(`read session ${sessionId}`, (tx) => {
      const session = findListedSession(tx, sessionId);
      return session && sessionRecord(session);
    });
  }

  list(options: { readonly limit?: number; readonly cursor?: string } = {}): Promise<SessionPage> {
    return this.#handle.read("list the sessions", (tx) => list(tx, options));
  }

  records(
    sessionId: string,
    { withoutEntries = false }: { readonly withoutEntries?: boolean } = {},
  ): Promise<SessionRecords | undefined> {
    return this.#handle.read(`read the records of session ${sessionId}`, (tx) =>
      records(tx, sessionId, withoutEntries),
    );
  }

  async importSession(records: SessionRecords): Promise<ImportResult> {
    const { sessionId } = records.session;
    // Before the lock: to prove a long session takes a while, and others wait for the lock.
    const imported = importOf(records, this.#host.clock.wallMs());
    return this.#handle.write("ordinary", `import session ${sessionId}`, (tx): ImportResult => {
      if (findSession(tx, sessionId)) return { kind: "exists" };
      const lease = findLeaseView(tx, sessionId);
      if (lease && lease.standing !== "expired") return { kind: "held", lease };
      return { kind: "imported", session: sessionRecord(insertImported(tx, imported)) };
    });
  }

  tokens({ after = "", limit = tokenPageSize }: { readonly after?: string; readonly limit?: number } = {}): Promise<
    readonly SessionToken[]
  > {
    return this.#handle.read("list the fencing tokens", (tx) =>
      tx.rows.all<SessionToken>(
        "SELECT session_id AS sessionId, fencing_token AS fencingToken FROM lease WHERE session_id > ? ORDER BY session_id LIMIT ?",
        after,
        limit,
      ),
    );
  }

  raiseToken(token: SessionToken): ReturnType<SessionStore["raiseToken"]> {
    return this.#handle.write("ordinary", `raise the fencing token of session ${token.sessionId}`, (tx) =>
      raiseToken(tx, token),
    );
  }

  setTitle(
    sessionId: string,
    title: string,
    { ifUnnamed = false }: { readonly ifUnnamed?: boolean } = {},
  ): ReturnType<SessionStore["setTitle"]> {
    const given = titleOf(title);
    return this.#handle.write("ordinary", `name session ${sessionId}`, (tx) =>
      setTitle(tx, sessionId, given === "" ? null : given, ifUnnamed),
    );
  }

  unchanged(request: UnchangedRequest): Promise<readonly string[]> {
    return this.#handle.read("look for sessions that nobody uses", (tx) => unchanged(tx, request));
  }

  async delete(
    sessionId: string,
    { ifUnchangedSinceMs }: { readonly ifUnchangedSinceMs?: number } = {},
  ): ReturnType<SessionStore["delete"]> {
    const result = await this.#handle.write("ordinary", `delete session ${sessionId}`, (tx) =>
      remove(tx, sessionId, ifUnchangedSinceMs),
    );
    // What would come back into a session of that name otherwise.
    if (result.kind === "deleted") this.#spool.forget(sessionId);
    return result;
  }
}
