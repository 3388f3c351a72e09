import type { SessionRecord } from "@turnkeeper/state-store";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { clipped } from "../display/style.ts";
import { counted } from "../display/count-text.ts";
import { localTime, table } from "../display/transcript-text.ts";
import { exitCode } from "../exit-code.ts";
import { withStore } from "../observer.ts";
import { sessionJson } from "@turnkeeper/gateway/json";
import { pageAfter, printJson } from "./session-command.ts";

/** What is left of a line for the title, which comes last. */
const narrowestTitle = 20;

function cellsOf({ sessionId, updatedAtMs, entryCount, totals }: SessionRecord): readonly string[] {
  const tokenCount = totals.inputTokens + totals.outputTokens;
  return [
    sessionId,
    `${entryCount} entries`,
    counted(totals.turnCount, "turn"),
    tokenCount === 0 ? "" : counted(tokenCount, "token"),
    `changed ${localTime(updatedAtMs)}`,
  ];
}

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
    const lines = table(sessions.map((session) => [...cellsOf(session), ""]));
    for (const [index, line] of lines.entries()) {
      const title = clipped(sessions[index]?.title ?? "", Math.max(narrowestTitle, io.stdout.columns - line.length));
      io.stdout.line(`${line}${title}`.trimEnd());
    }
    if (nextCursor !== undefined) io.stderr.line(`More: --cursor ${nextCursor}`);
    return exitCode.ok;
  });
}
