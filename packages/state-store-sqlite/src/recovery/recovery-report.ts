import type { Violation } from "@turnkeeper/state-store";

/** A row that was not brought, and where it lies: pages count from 1, cells of a page from 0. */
export interface RefusedRow {
  /** Absent where the bytes fit no table, or several. */
  readonly table?: string;
  readonly page: number;
  readonly cell: number;
  /** The row number it claims. */
  readonly row?: number;
  readonly reason: string;
}

export interface UnreadPage {
  readonly page: number;
  /** Whose it was, where the rest of the file tells. */
  readonly table?: string;
  /** Of an index or of something derived: nothing that is brought was there. */
  readonly isDerived?: true;
  readonly reason: string;
}

export interface RecoveredTable {
  readonly table: string;
  /** Rows of this table that could be told as such. */
  readonly foundCount: number;
  readonly broughtCount: number;
  /** Older copies of rows that were brought. */
  readonly olderCount: number;
  readonly refusedCount: number;
}

/** Entries that the store had and the recovered one has not, by their `seq`. */
export interface MissingEntries {
  readonly session: string;
  readonly fromSeq: number;
  readonly throughSeq: number;
}

/** Something made or changed so that the rows that were brought make a whole again. */
export interface Mend {
  readonly session: string;
  readonly detail: string;
}

/** The file that was read. */
export interface RecoverySource {
  readonly path: string;
  readonly byteCount: number;
  readonly pageSize: number;
  readonly pageCount: number;
  /** Frames of the -wal that were used, and those that are damaged. */
  readonly walFrameCount: number;
  readonly damagedWalFrameCount: number;
  /** Frames that the log had, as its index tells, and that neither it nor the database has any more. */
  readonly missingWalFrameCount: number;
}

export interface RecoveryReport {
  readonly source: RecoverySource;
  /** The recovered store; absent after an inspection, which keeps nothing. */
  readonly output?: string;
  /** Nothing was refused, missing or mended, nor anything unread but what is made anew. */
  readonly isComplete: boolean;
  readonly tables: readonly RecoveredTable[];
  readonly refusedRows: readonly RefusedRow[];
  readonly unreadPages: readonly UnreadPage[];
  readonly missingEntries: readonly MissingEntries[];
  readonly mends: readonly Mend[];
  /** How many of all these lists were left out, since a list ends at 10,000. */
  readonly unlistedCount: number;
  /** What `verifyRecords` says of the recovered store. */
  readonly violations: readonly Violation[];
  /** What waits in the spool, whose copy lies beside the output: it comes back with the next turn on each session. */
  readonly spool: readonly { readonly session: string; readonly stepCount: number; readonly damagedCount: number }[];
  readonly notes: readonly string[];
}

export interface RecoveryProgress {
  readonly stage: "read" | "mend" | "verify";
  /** Of `totalCount`, of whatever the stage counts: pages, sessions. */
  readonly doneCount: number;
  readonly totalCount: number;
}
