/** What the transcript must be, against what its writers were told. */
import type { Entry, SessionRecords } from "@turnkeeper/state-store";
import type { RecordIndex } from "./record-index.ts";
import { writingOf } from "./written-entry.ts";

/** APPEND-1: whole turns, one after another, under tokens that never fall, each entry under the token of its turn. */
function* wholeTurns({ entries, turns }: SessionRecords): Generator<string> {
  const tokens = new Map(turns.map((turn) => [turn.turnId, turn.fencingToken]));
  const left = new Set<string>();
  let current: Entry | undefined;
  for (const entry of entries) {
    const { turnId, seq } = entry;
    const token = tokens.get(turnId) ?? 0;
    if (current && current.turnId !== turnId) {
      left.add(current.turnId);
      if (left.has(turnId)) yield `APPEND-1: entry ${seq} continues turn ${turnId} after turn ${current.turnId} began`;
      if (token < (tokens.get(current.turnId) ?? 0))
        yield `APPEND-1: entry ${seq} has token ${token}, less than the token before it`;
    }
    const writing = writingOf(entry);
    if (writing && writing.fencingToken !== token)
      yield `APPEND-1: entry ${seq} was written under token ${writing.fencingToken} into turn ${turnId} of token ${token}`;
    current = entry;
  }
}

/** APPEND-3, APPEND-1: what was acknowledged is there once, in its turn and in order; what was refused is not. */
function* appendsAreKept(index: RecordIndex, { entries }: SessionRecords): Generator<string> {
  const written = new Map<string, Entry[]>();
  for (const entry of entries) {
    const writing = writingOf(entry);
    if (!writing) continue;
    written.set(writing.key, [...(written.get(writing.key) ?? []), entry]);
    if (writing.key !== entry.key)
      yield `APPEND-3: entry ${entry.seq} has key ${entry.key} and the content of ${writing.key}`;
  }
  const lastSeqs = new Map<string, number>();
  for (const { key, turnId, worker } of index.all("appended")) {
    const found = written.get(key) ?? [];
    const [entry] = found;
    if (!entry) yield `APPEND-3: entry ${key} was acknowledged to ${worker} and is lost`;
    if (found.length > 1) yield `APPEND-3: entry ${key} is there ${found.length} times`;
    if (!entry) continue;
    if (entry.turnId !== turnId) yield `APPEND-3: entry ${key} is in turn ${entry.turnId}`;
    if (entry.seq <= (lastSeqs.get(turnId) ?? 0)) yield `APPEND-3: entry ${key} stands before one acknowledged earlier`;
    lastSeqs.set(turnId, entry.seq);
  }
  for (const { key, worker } of index.all("refused"))
    if (key !== undefined && written.has(key)) yield `APPEND-1: entry ${key} was refused to ${worker} and is there`;
}

export function* transcriptViolations(index: RecordIndex, records: SessionRecords): Generator<string> {
  yield* wholeTurns(records);
  yield* appendsAreKept(index, records);
}
