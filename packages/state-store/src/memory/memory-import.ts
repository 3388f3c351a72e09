import type { SessionRecords } from "../session.ts";
import { sessionFactsOf } from "../session-facts.ts";
import { titleOf } from "../title.ts";
import type { SessionRow } from "./memory-rows.ts";
import type { MemoryState } from "./memory-state.ts";

/** Makes a session of records that `importOf` answered and that is not there yet. */
export function addImported(state: MemoryState, records: SessionRecords): SessionRow {
  const { session, inputs, turns, entries, summaries, compactionCount } = records;
  const { sessionId } = session;
  const row = state.ensureSession(sessionId, session.createdAtMs);
  row.updatedAtMs = session.updatedAtMs;
  row.revision = session.revision;
  row.compactionCount = compactionCount;
  row.lastSeq = session.entryCount;
  row.parent = session.parent;
  // Whoever wanted it wanted it elsewhere.
  row.hasToldParent = true;
  const { firstText = "" } = sessionFactsOf(entries);
  row.givenTitle = session.title === undefined || session.title === titleOf(firstText) ? "" : session.title;
  const places = new Map(summaries.map(({ seq, throughSeq }) => [seq, throughSeq]));
  for (const entry of entries) {
    row.entries.push(entry);
    row.storedNos.push(state.nextStoredNo());
    row.digestByKey.set(entry.key, entry.digest);
    const throughSeq = places.get(entry.seq);
    if (throughSeq !== undefined) row.summaryPlace.set(entry.key, throughSeq);
  }
  for (const record of inputs) {
    row.inputs.set(record.inputId, { record });
    state.lastInputSeq = Math.max(state.lastInputSeq, record.seq);
  }
  for (const turn of turns) row.turns.set(turn.turnId, turn);
  // A late write of an expired holder must find its grant gone, so the token rises as with a deletion.
  const known = state.leases.get(sessionId);
  const ownToken = known ? known.fencingToken + (known.held ? 1 : 0) : 0;
  const fencingToken = Math.max(ownToken, records.fencingToken);
  if (fencingToken > 0) state.leases.set(sessionId, { fencingToken });
  return row;
}
