import type { SessionRecords, StateStore } from "@turnkeeper/state-store";

/** Everything of a session but its entries, and where they end. */
export interface Snapshot {
  readonly records: SessionRecords;
  /** The transcript that belongs to the records ends before this. */
  readonly beforeSeq: number;
}

/** Records and the end of their transcript at one revision, though they are two reads and a turn may be writing. */
export async function snapshotOf(store: StateStore, sessionId: string): Promise<Snapshot | undefined> {
  for (;;) {
    const records = await store.sessions.records(sessionId, { withoutEntries: true });
    if (!records) return undefined;
    const { entries, revision } = await store.transcript.load(sessionId, { all: true, limit: 1 });
    if (revision === records.session.revision) return { records, beforeSeq: (entries.at(-1)?.seq ?? 0) + 1 };
  }
}

/** Whether entries were archived since: those of a snapshot are then not all of one state. */
export async function wasCompacted(store: StateStore, { records }: Snapshot): Promise<boolean> {
  const { compactionCount } = await store.transcript.load(records.session.sessionId, { all: true, limit: 0 });
  return compactionCount !== records.compactionCount;
}
