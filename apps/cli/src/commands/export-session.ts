import type { SessionRecords, StateStore } from "@turnkeeper/state-store";
import { cliError } from "../cli-error.ts";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { exitCode } from "../exit-code.ts";
import { withStore } from "../observer.ts";
import { entryLine, recordLines } from "../session-json.ts";
import { entriesOf } from "../transcript-windows.ts";
import { sessionIdOf, unknownSession } from "./session-command.ts";

interface Snapshot {
  readonly records: SessionRecords;
  /** The transcript that belongs to the records ends before this. */
  readonly beforeSeq: number;
  readonly compactionCount: number;
}

/** Records and the end of their transcript at one revision, though they are two reads and a turn may be writing. */
async function snapshotOf(store: StateStore, sessionId: string): Promise<Snapshot | undefined> {
  for (;;) {
    const records = await store.sessions.records(sessionId, { withoutEntries: true });
    if (!records) return undefined;
    const { entries, revision, compactionCount } = await store.transcript.load(sessionId, { all: true, limit: 1 });
    if (revision === records.session.revision)
      return { records, beforeSeq: (entries.at(-1)?.seq ?? 0) + 1, compactionCount };
  }
}

/** `turnkeeper sessions export ID`: one state of the session, window by window, whatever is appended meanwhile. */
export async function exportSession(io: CommandIo, id: string, flags: CommonFlags): Promise<number> {
  const sessionId = await sessionIdOf(id);
  return withStore(io, flags, async (store) => {
    const snapshot = await snapshotOf(store, sessionId);
    if (!snapshot) throw unknownSession(sessionId);
    const { records, beforeSeq, compactionCount } = snapshot;
    for (const line of recordLines(records)) io.stdout.line(line);
    for await (const entry of entriesOf(store, sessionId, { beforeSeq })) {
      io.stdout.line(entryLine(entry));
      await io.stdout.ready();
      if (io.stdout.isGone) return exitCode.ok;
    }
    const after = await store.transcript.load(sessionId, { all: true, limit: 0 });
    if (after.compactionCount !== compactionCount)
      throw cliError("REFUSED", `Session ${sessionId} was compacted while it was exported. Export it again.`);
    return exitCode.ok;
  });
}
