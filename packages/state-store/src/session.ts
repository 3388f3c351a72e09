import type { ParentCall } from "./child.ts";
import type { Entry, EntryBody } from "./entry.ts";
import type { InputRecord } from "./inbox.ts";
import type { LeaseView } from "./lease.ts";
import type { TurnRecord } from "./turn.ts";

export interface SessionRecord {
  readonly sessionId: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly revision: number;
  readonly entryCount: number;
  /** What it was named, else its first user message, as `titleOf` cuts both; absent before there is either. */
  readonly title?: string;
  /** The entry that was stored last; absent before the first. */
  readonly lastEntry?: LastEntry;
  readonly totals: SessionTotals;
  /** The call that it was made for; absent: nobody's child. */
  readonly parent?: ParentCall;
}

/** What a session did last, for whoever looks at a list of them. */
export interface LastEntry {
  readonly atMs: number;
  readonly role: EntryBody["role"];
  /** The tool whose result it is, or that it calls last. */
  readonly toolName?: string;
}

/** Sums over everything a session has stored, archived and late entries too; a count that no provider gave is 0. */
export interface SessionTotals {
  /** Turns that were begun. */
  readonly turnCount: number;
  readonly toolCallCount: number;
  /** As the entries' `usage` counts them: what was answered, not what was tried. */
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Everything the store has of one session: what `export` writes and `verify` reads. */
export interface SessionRecords {
  readonly session: SessionRecord;
  /** The greatest fencing token ever granted. */
  readonly fencingToken: number;
  readonly lease?: LeaseView;
  readonly inputs: readonly InputRecord[];
  readonly turns: readonly TurnRecord[];
  /** How many summaries have been applied. */
  readonly compactionCount: number;
  /** Where the summaries stand in the context, in order of appending. */
  readonly summaries: readonly SummaryPlace[];
  /** Every entry, archived and late ones too, in order of appending. */
  readonly entries: readonly Entry[];
}

/** A summary stands where its basis ended, though it was appended later. */
export interface SummaryPlace {
  readonly seq: number;
  readonly throughSeq: number;
}

export type ImportResult =
  | { readonly kind: "imported"; readonly session: SessionRecord }
  /** The store has a session of that id: nothing was changed. */
  | { readonly kind: "exists" }
  /** Somebody has the lease of a session of that id, which is not there yet: nothing was changed. */
  | { readonly kind: "held"; readonly lease: LeaseView };

/** The greatest fencing token that was ever granted on a session id, of a deleted session too. */
export interface SessionToken {
  readonly sessionId: string;
  readonly fencingToken: number;
}

export interface SessionPage {
  readonly sessions: readonly SessionRecord[];
  /** Give it back as `cursor` for the next page; absent on the last. */
  readonly nextCursor?: string;
}

/** Which sessions nobody has used for a while. */
export interface UnchangedRequest {
  readonly prefix: string;
  readonly sinceMs: number;
  readonly limit: number;
  /** Where the page before ended. Default: the beginning. */
  readonly after?: string;
}

export interface SessionStore {
  /**
   * The store's time for people, in wall milliseconds: what it stamps as `…AtMs` was told by this clock, so an age is
   * counted by it, and not by that of whoever asks from another machine.
   */
  nowMs(): Promise<number>;
  read(sessionId: string): Promise<SessionRecord | undefined>;
  /** Most recently changed first. */
  list(options?: { readonly limit?: number; readonly cursor?: string }): Promise<SessionPage>;
  /** With `withoutEntries` none of the transcript is read: `load` brings it, window by window. */
  records(sessionId: string, options?: { readonly withoutEntries?: boolean }): Promise<SessionRecords | undefined>;
  /**
   * Makes a session of records, all of it or nothing: what `records` answered elsewhere is answered here again, but for
   * what `importOf` settles. The fencing token is the greater of theirs and of what this store granted (LEASE-2).
   * Rejects with `STORE_CONTRACT`, naming what is wrong in them.
   */
  importSession(records: SessionRecords): Promise<ImportResult>;
  /** Every session id that was ever granted, `limit` (1,000) at a time behind `after`, in the order of their UTF-8 bytes. */
  tokens(options?: { readonly after?: string; readonly limit?: number }): Promise<readonly SessionToken[]>;
  /**
   * Sees to it that the next grant's token is above this one, whether the session is there or not: what another store
   * granted is never granted again here (LEASE-2). Never lowers a token. A lease in the way, an expired one too, is left
   * alone and told.
   */
  raiseToken(
    token: SessionToken,
  ): Promise<{ readonly kind: "stands" } | { readonly kind: "held"; readonly lease: LeaseView }>;
  /**
   * Names a session; an empty title gives it back the one of its first message. A change like any other. With
   * `ifUnnamed` a session that was named already is left alone, and answered `named`.
   */
  setTitle(
    sessionId: string,
    title: string,
    options?: { readonly ifUnnamed?: boolean },
  ): Promise<{ readonly kind: "set" } | { readonly kind: "named" } | { readonly kind: "unknown" }>;
  /**
   * The ids behind `after` that begin with `prefix`, of sessions that have not changed since then by the store's clock: at
   * most `limit`, in the order of their bytes. A cheap read.
   */
  unchanged(request: UnchangedRequest): Promise<readonly string[]>;
  /**
   * Forgets a session, but not its fencing token (LEASE-2). A session that is held is left alone and told. With
   * `ifUnchangedSinceMs` so is one, as `in-use`, that has changed since, has an input that waits or a turn that has not ended.
   */
  delete(
    sessionId: string,
    options?: { readonly ifUnchangedSinceMs?: number },
  ): Promise<
    | { readonly kind: "deleted" }
    | { readonly kind: "held"; readonly lease: LeaseView }
    | { readonly kind: "in-use" }
    | { readonly kind: "unknown" }
  >;
}
