import { cliError } from "../cli-error.ts";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { exitCode } from "../exit-code.ts";
import { withStore } from "../observer.ts";
import { exportCommand } from "../printed-command.ts";
import { endLine, entryLine, recordLines } from "../session-export.ts";
import { snapshotOf, wasCompacted } from "../snapshot.ts";
import { entriesOf } from "../transcript-windows.ts";
import { sessionIdOf, unknownSession } from "./session-command.ts";

/** `turnkeeper sessions export ID`: one state of the session, window by window, whatever is appended meanwhile. */
export async function exportSession(io: CommandIo, id: string, flags: CommonFlags): Promise<number> {
  const sessionId = await sessionIdOf(id);
  return withStore(io, flags, async (store, context) => {
    const snapshot = await snapshotOf(store, sessionId);
    if (!snapshot) throw unknownSession(sessionId);
    const { records, beforeSeq } = snapshot;
    let lineCount = 0;
    const write = (line: string): void => {
      io.stdout.line(line);
      lineCount++;
    };
    for (const line of recordLines(records)) write(line);
    for await (const entry of entriesOf(store, sessionId, { beforeSeq })) {
      write(entryLine(entry));
      await io.stdout.ready();
      if (io.stdout.isGone) return exitCode.ok;
    }
    if (await wasCompacted(store, snapshot))
      throw cliError(
        "REFUSED",
        `Session ${sessionId} was compacted while it was exported, and what was written cannot be imported. Next: ${exportCommand(context.store.shown, sessionId)}`,
      );
    write(endLine(lineCount));
    return exitCode.ok;
  });
}
