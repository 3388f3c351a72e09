import type { Entry } from "./entry.ts";
import type { InputRecord } from "./inbox.ts";
import type { LeaseView } from "./lease.ts";
import type { TurnRecord } from "./turn.ts";

export interface SessionRecord {
  readonly sessionId: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly revision: number;
  readonly entryCount: number;
}

/** Everything the store has of one session: what `export` writes and `verify` reads. */
export interface SessionRecords {
  readonly session: SessionRecord;
  /** The greatest fencing token ever granted. */
  readonly fencingToken: number;
  readonly lease?: LeaseView;
  readonly inputs: readonly InputRecord[];
  readonly turns: readonly TurnRecord[];
  /** Every entry, archived and late ones too, in order of appending. */
  readonly entries: readonly Entry[];
}

export interface SessionPage {
  readonly sessions: readonly SessionRecord[];
  /** Give it back as `cursor` for the next page; absent on the last. */
  readonly nextCursor?: string;
}

export interface SessionStore {
  read(sessionId: string): Promise<SessionRecord | undefined>;
  /** Most recently changed first. */
  list(options?: { readonly limit?: number; readonly cursor?: string }): Promise<SessionPage>;
  records(sessionId: string): Promise<SessionRecords | undefined>;
  /** Forgets a session, but not its fencing token (LEASE-2). A session that is held is left alone and told. */
  delete(
    sessionId: string,
  ): Promise<
    { readonly kind: "deleted" } | { readonly kind: "held"; readonly lease: LeaseView } | { readonly kind: "unknown" }
  >;
}
