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
import { tellParent } from "./child-sessions.ts";
import { entryOf } from "./entry-rows.ts";
import type { EntryRow } from "./entry-rows.ts";
import { addImported } from "./imported-session.ts";
import { inputRecord, queueOf } from "./input-rows.ts";
import type { InputRow } from "./input-rows.ts";
import { freeLease, isHeld, leaseView, serverBootId } from "./lease-rows.ts";
import type { LeaseRow } from "./lease-rows.ts";
import type { PostgresSpool } from "./postgres-spool.ts";
import type { Server } from "./server.ts";
import type { SessionImage } from "./session-image.ts";
import { sessionRecord } from "./session-rows.ts";
import type { SessionRow } from "./session-rows.ts";
import type { SessionWrites } from "./session-writes.ts";
import { settleCrashed } from "./settlement.ts";
import { storeError } from "./store-failure.ts";
import { turnRecord } from "./turn-rows.ts";
import type { TurnRow } from "./turn-rows.ts";

const pageSize = 100;

const tokenPageSize = 1000;

/** The last session of a page; the next page begins behind it, whatever changed since. */
const cursorPattern = /^(\d+(?:\.\d+)?)\/(.+)$/;

interface Position {
  readonly updatedAtMs: number;
  readonly sessionId: string;
}

const beforeAll: Position = { updatedAtMs: Number.MAX_SAFE_INTEGER, sessionId: "" };

function positionOf(cursor: string): Position {
  const [, updatedAt, sessionId] = cursorPattern.exec(cursor) ?? [];
  if (updatedAt === undefined || sessionId === undefined)
    throw storeError("STORE_CONTRACT", `Not a cursor of this list: ${JSON.stringify(cursor)}.`);
  return { updatedAtMs: Number(updatedAt), sessionId };
}

function importInto(image: SessionImage, records: SessionRecords): ImportResult {
  if (image.session) return { kind: "exists" };
  const lease = image.leaseView;
  if (lease && lease.standing !== "expired") return { kind: "held", lease };
  addImported(image, records);
  return { kind: "imported", session: records.session };
}

function isInUse(image: SessionImage, sinceMs: number): boolean {
  const { updated_at_ms: updatedAtMs = null } = image.session ?? {};
  return (
    (updatedAtMs ?? Number.POSITIVE_INFINITY) > sinceMs || image.openTurn !== undefined || queueOf(image).length > 0
  );
}

function remove(
  image: SessionImage,
  ifUnchangedSinceMs: number | undefined,
): Awaited<ReturnType<SessionStore["delete"]>> {
  const lease = image.leaseView;
  if (lease && lease.standing !== "expired") return { kind: "held", lease };
  if (!image.session) return { kind: "unknown" };
  if (ifUnchangedSinceMs !== undefined && isInUse(image, ifUnchangedSinceMs)) return { kind: "in-use" };
  // The processes of a turn that nobody ended outlive its session.
  settleCrashed(image);
  tellParent(image, { outcome: "failed", reason: "deleted" }, (parentId) => image.other(parentId));
  // A late write of an expired holder must find its grant gone, so the token rises with the deletion.
  freeLease(image, isHeld(image.lease) ? 1 : 0);
  image.deleteSession();
  return { kind: "deleted" };
}

function raiseToken(image: SessionImage, fencingToken: number): Awaited<ReturnType<SessionStore["raiseToken"]>> {
  const { lease, leaseView } = image;
  if ((lease?.fencing_token ?? 0) >= fencingToken) return { kind: "stands" };
  if (leaseView) return { kind: "held", lease: leaseView };
  image.putLease({ fencing_token: fencingToken, predecessors: lease?.predecessors ?? null, holder_id: null });
  return { kind: "stands" };
}

interface RecordRows {
  readonly clock_ms: number;
  readonly session: SessionRow;
  readonly lease: LeaseRow;
  readonly fencing_token: number;
  readonly inputs: readonly InputRow[] | null;
  readonly turns: readonly TurnRow[] | null;
  readonly summaries: readonly SummaryPlace[] | null;
  readonly entries: readonly EntryRow[] | null;
}

function recordsOf(sessionId: string, rows: RecordRows): SessionRecords {
  const lease = leaseView(sessionId, rows.lease, { bootId: serverBootId, bootMs: rows.clock_ms });
  return {
    session: sessionRecord(sessionId, rows.session),
    fencingToken: rows.lease.fencing_token,
    ...(lease ? { lease } : {}),
    inputs: (rows.inputs ?? []).map((input) => inputRecord(sessionId, input)),
    turns: (rows.turns ?? []).map((turn) => turnRecord(sessionId, turn)),
    compactionCount: rows.session.compaction_count,
    summaries: rows.summaries ?? [],
    entries: (rows.entries ?? []).map(entryOf),
  };
}

export class PostgresSessions implements SessionStore {
  readonly #server: Server;
  readonly #writes: SessionWrites;
  readonly #spool: PostgresSpool;
  readonly #host: Host;

  constructor(server: Server, writes: SessionWrites, spool: PostgresSpool, host: Host) {
    this.#server = server;
    this.#writes = writes;
    this.#spool = spool;
    this.#host = host;
  }

  async nowMs(): Promise<number> {
    const text = `SELECT ${this.#server.schema}.wall_ms() AS now_ms`;
    const [row] = await this.#server.read<{ now_ms: number }>("read the server's time", text, []);
    return row?.now_ms ?? 0;
  }

  async read(sessionId: string): Promise<SessionRecord | undefined> {
    const [row] = await this.#server.read<{ session: SessionRow }>(
      `read session ${sessionId}`,
      `SELECT row_to_json(session) AS session FROM ${this.#server.schema}.session WHERE session_id = $1`,
      [sessionId],
    );
    return row && sessionRecord(sessionId, row.session);
  }

  async list(options: { readonly limit?: number; readonly cursor?: string } = {}): Promise<SessionPage> {
    const limit = Math.max(0, options.limit ?? pageSize);
    const { updatedAtMs, sessionId } = options.cursor === undefined ? beforeAll : positionOf(options.cursor);
    // One more than the page tells whether there is a next one.
    const rows = await this.#server.read<{ session_id: string; session: SessionRow }>(
      "list the sessions",
      `SELECT session_id, row_to_json(session) AS session FROM ${this.#server.schema}.session
       WHERE updated_minute <= floor($1::double precision / 60000) AND updated_at_ms <= $1
         AND (updated_at_ms < $1 OR session_id > $2)
       ORDER BY updated_minute DESC, updated_at_ms DESC, session_id LIMIT $3`,
      [updatedAtMs, sessionId, limit + 1],
    );
    const sessions = rows.slice(0, limit).map((row) => sessionRecord(row.session_id, row.session));
    const last = sessions.at(-1);
    if (!last || rows.length <= limit) return { sessions };
    return { sessions, nextCursor: `${last.updatedAtMs}/${last.sessionId}` };
  }

  async records(
    sessionId: string,
    { withoutEntries = false }: { readonly withoutEntries?: boolean } = {},
  ): Promise<SessionRecords | undefined> {
    const { schema } = this.#server;
    const own = (table: string): string => `${schema}.${table} WHERE ${table}.session_no = session.session_no`;
    const entries = `(SELECT json_agg(json_build_object('seq', seq, 'key', key, 'turn_id', turn_id, 'body', body,
      'digest', digest, 'at_ms', at_ms, 'archived', archived, 'late', late) ORDER BY seq) FROM ${own("entry")})`;
    const [row] = await this.#server.read<{ records: RecordRows }>(
      `read the records of session ${sessionId}`,
      `SELECT json_build_object(
         'clock_ms', ${schema}.clock_ms(), 'session', row_to_json(session), 'lease', row_to_json(lease),
         'inputs', (SELECT json_agg(input ORDER BY seq) FROM ${own("input")}),
         'turns', (SELECT json_agg(turn ORDER BY fencing_token, turn_no) FROM ${own("turn")}),
         'summaries', (SELECT json_agg(json_build_object('seq', seq, 'throughSeq', place) ORDER BY seq)
           FROM ${own("entry")} AND place <> seq),
         'entries', ${withoutEntries ? "NULL" : entries}
       ) AS records
       FROM ${schema}.session JOIN ${schema}.lease USING (session_id) WHERE session_id = $1`,
      [sessionId],
    );
    return row && recordsOf(sessionId, row.records);
  }

  async importSession(records: SessionRecords): Promise<ImportResult> {
    const { sessionId } = records.session;
    const imported = importOf(records, this.#host.clock.wallMs());
    return await this.#writes.write({
      sessionId,
      attempt: `import session ${sessionId}`,
      kind: "ordinary",
      decide: (image) => importInto(image, imported),
    });
  }

  async tokens({
    after = "",
    limit = tokenPageSize,
  }: { readonly after?: string; readonly limit?: number } = {}): Promise<readonly SessionToken[]> {
    const rows = await this.#server.read<{ session_id: string; fencing_token: number }>(
      "list the fencing tokens",
      `SELECT session_id, fencing_token::double precision FROM ${this.#server.schema}.lease
       WHERE session_id > $1 AND fencing_token > 0 ORDER BY session_id LIMIT $2`,
      [after, limit],
    );
    return rows.map(({ session_id, fencing_token }) => ({ sessionId: session_id, fencingToken: fencing_token }));
  }

  raiseToken({ sessionId, fencingToken }: SessionToken): ReturnType<SessionStore["raiseToken"]> {
    return this.#writes.write({
      sessionId,
      attempt: `raise the fencing token of session ${sessionId}`,
      kind: "ordinary",
      isRepeatable: true,
      decide: (image) => raiseToken(image, fencingToken),
    });
  }

  setTitle(
    sessionId: string,
    title: string,
    { ifUnnamed = false }: { readonly ifUnnamed?: boolean } = {},
  ): ReturnType<SessionStore["setTitle"]> {
    const given = titleOf(title);
    return this.#writes.write({
      sessionId,
      attempt: `name session ${sessionId}`,
      kind: "ordinary",
      isRepeatable: true,
      decide: (image) => {
        if (!image.session) return { kind: "unknown" } as const;
        if (ifUnnamed && image.session.given_title !== null) return { kind: "named" } as const;
        image.putSession({ ...image.session, given_title: given === "" ? null : given });
        image.touch();
        return { kind: "set" } as const;
      },
    });
  }

  async unchanged({ prefix, sinceMs, limit, after = "" }: UnchangedRequest): Promise<readonly string[]> {
    // No id has a character behind the tilde, so the range is all that begin so.
    const rows = await this.#server.read<{ session_id: string }>(
      "look for sessions that nobody uses",
      `SELECT session_id FROM ${this.#server.schema}.session
       WHERE session_id >= $1 AND session_id < $2 AND session_id > $3 AND updated_at_ms <= $4
       ORDER BY session_id LIMIT $5`,
      [prefix, `${prefix}\u007f`, after, sinceMs, limit],
    );
    return rows.map((row) => row.session_id);
  }

  async delete(
    sessionId: string,
    { ifUnchangedSinceMs }: { readonly ifUnchangedSinceMs?: number } = {},
  ): ReturnType<SessionStore["delete"]> {
    const result = await this.#writes.write({
      sessionId,
      attempt: `delete session ${sessionId}`,
      kind: "ordinary",
      decide: (image) => remove(image, ifUnchangedSinceMs),
    });
    // What would come back into a session of that name otherwise.
    if (result.kind === "deleted") this.#spool.forget(sessionId);
    return result;
  }
}
