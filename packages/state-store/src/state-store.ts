import type { InboxStore } from "./inbox.ts";
import type { LeaseStore } from "./lease.ts";
import type { SessionStore } from "./session.ts";
import type { SpoolStore } from "./spool.ts";
import type { TranscriptStore } from "./transcript.ts";
import type { TurnStore } from "./turn.ts";

/**
 * The storage contract: six narrow ports over one durable state, and `close`. Every method is one whole transaction,
 * named by its intention, and answers with a promise; there is no connection, no SQL and no callback in it. Races have
 * values for answers; a promise rejects with a `CodedError` whose code is a `StoreErrorCode`.
 */
export interface StateStore {
  readonly sessions: SessionStore;
  readonly leases: LeaseStore;
  readonly transcript: TranscriptStore;
  readonly inbox: InboxStore;
  readonly turns: TurnStore;
  readonly spool: SpoolStore;
  /**
   * Whether the store would take a write, as far as a look tells that writes nothing and waits for no lock: rejects with
   * what a write would be refused with. Cheap enough for a probe.
   */
  check(): Promise<void>;
  /** Ends this handle; safe to repeat. Afterwards every call rejects with `STORE_CLOSED`. */
  close(): Promise<void>;
}
