import type { Entry, LoadOptions, StateStore } from "@turnkeeper/state-store";

/** So many entries are in memory at a time, however long the session is. */
const windowSize = 200;

/** Every entry of a session that `range` allows, in the order of appending. */
export async function* entriesOf(
  store: StateStore,
  sessionId: string,
  range: Pick<LoadOptions, "afterSeq" | "beforeSeq"> = {},
): AsyncGenerator<Entry> {
  let { afterSeq = 0 } = range;
  for (;;) {
    const { entries } = await store.transcript.load(sessionId, { ...range, afterSeq, all: true, first: windowSize });
    yield* entries;
    const last = entries.at(-1);
    if (!last || entries.length < windowSize) return;
    afterSeq = last.seq;
  }
}
