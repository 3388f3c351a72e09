/** The rows behind the in-memory reference. */
import { CodedError } from "@turnkeeper/kernel";
import type { ParentCall } from "../child.ts";
import type { CompactionHealth } from "../compaction-health.ts";
import type { BootInstant } from "../decisions.ts";
import type { Entry, Usage } from "../entry.ts";
import type { StoreErrorCode } from "../errors.ts";
import type { Holder } from "../identity.ts";
import type { InputRecord } from "../inbox.ts";
import type { StopRequest, TurnOutcome, TurnRecord } from "../turn.ts";

export interface LeaseRow {
  readonly fencingToken: number;
  /** Absent: free. The row itself is never deleted, or the token would start again (LEASE-2). */
  readonly held?: {
    readonly holder: Holder;
    readonly ttlMs: number;
    readonly renewCount: number;
    readonly expires: BootInstant;
    readonly acquiredAtMs: number;
    readonly expiresAtMs: number;
  };
}

export interface InputRow {
  readonly record: InputRecord;
  readonly wokenAt?: BootInstant;
}

interface OpenCall {
  readonly turnId: string;
  readonly callId: string;
  readonly name: string;
}

export interface SessionRow {
  readonly sessionId: string;
  readonly createdAtMs: number;
  updatedAtMs: number;
  revision: number;
  compactionCount: number;
  compactionHealth: CompactionHealth | undefined;
  lastSeq: number;
  readonly entries: Entry[];
  /** Where each entry stands among those of all sessions, by its index: the order in which they were stored. */
  readonly storedNos: number[];
  /** What it was named; empty: not at all. */
  givenTitle: string;
  /** Where a summary stands among the entries: at the end of what it replaced. */
  readonly summaryPlace: Map<string, number>;
  readonly digestByKey: Map<string, string>;
  readonly openCalls: Map<string, OpenCall>;
  readonly inputs: Map<string, InputRow>;
  readonly turns: Map<string, TurnRecord>;
  /** The call that it was made for. */
  parent: ParentCall | undefined;
  /** Its one end was told, or is nobody's business here. */
  hasToldParent: boolean;
}

export interface TurnEnd {
  readonly outcome: TurnOutcome;
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
  readonly stop?: StopRequest | undefined;
  readonly usage?: Usage | undefined;
}

export function storeError(
  code: StoreErrorCode,
  message: string,
  context: Record<string, unknown> = {},
): CodedError<StoreErrorCode> {
  return new CodedError(code, message, { context });
}

export function newSession(sessionId: string, atMs: number): SessionRow {
  return {
    sessionId,
    createdAtMs: atMs,
    updatedAtMs: atMs,
    revision: 0,
    compactionCount: 0,
    compactionHealth: undefined,
    lastSeq: 0,
    entries: [],
    storedNos: [],
    givenTitle: "",
    summaryPlace: new Map(),
    digestByKey: new Map(),
    openCalls: new Map(),
    inputs: new Map(),
    turns: new Map(),
    parent: undefined,
    hasToldParent: false,
  };
}
