import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { sessionLines } from "../display/session-lines.ts";
import { exitCode } from "../exit-code.ts";
import { withStore } from "../observer.ts";
import { sessionJson } from "@turnkeeper/gateway/json";
import { pageAfter, printJson } from "./session-command.ts";

/** `turnkeeper sessions list`. */
export async function listSessions(
  io: CommandIo,
  flags: CommonFlags & { readonly limit: number; readonly cursor?: string },
): Promise<number> {
  return withStore(io, flags, async (store) => {
    const { limit, cursor } = flags;
    const { sessions, nextCursor } = await pageAfter(cursor, (after) => store.sessions.list({ limit, ...after }));
    if (flags.json) {
      printJson(io, { sessions: sessions.map(sessionJson), ...(nextCursor === undefined ? {} : { nextCursor }) });
      return exitCode.ok;
    }
    if (sessions.length === 0) io.stderr.line("No sessions yet.");
    for (const line of sessionLines(sessions, io.stdout.columns)) io.stdout.line(line);
    if (nextCursor !== undefined) io.stderr.line(`More: --cursor ${nextCursor}`);
    return exitCode.ok;
  });
}
