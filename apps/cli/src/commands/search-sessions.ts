import { cliError } from "../cli-error.ts";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { clipped, styleOf } from "../display/style.ts";
import { localTime } from "../display/transcript-text.ts";
import { exitCode } from "../exit-code.ts";
import { withStore } from "../observer.ts";
import { entryJson } from "@turnkeeper/gateway/json";
import { pageAfter, printJson, sessionIdOf } from "./session-command.ts";

/** `turnkeeper sessions search TEXT`. */
export async function searchSessions(
  io: CommandIo,
  text: string,
  flags: CommonFlags & { readonly session?: string; readonly limit: number; readonly cursor?: string },
): Promise<number> {
  const sessionId = flags.session === undefined ? undefined : await sessionIdOf(flags.session);
  if (text.trim() === "") throw cliError("USAGE", "Nothing to look for: the text is empty.");
  return withStore(io, flags, async (store) => {
    const options = { limit: flags.limit, ...(sessionId === undefined ? {} : { sessionId }) };
    const { hits, nextCursor } = await pageAfter(flags.cursor, (after) =>
      store.transcript.search(text, { ...options, ...after }),
    );
    if (flags.json) {
      const found = hits.map((hit) => ({ session: hit.sessionId, snippet: hit.snippet, entry: entryJson(hit.entry) }));
      printJson(io, { hits: found, ...(nextCursor === undefined ? {} : { nextCursor }) });
      return exitCode.ok;
    }
    if (hits.length === 0) io.stderr.line("Nothing found.");
    const style = styleOf(io.stdout.hasColour);
    for (const { sessionId: found, entry, snippet } of hits) {
      const head = `${found}  ${entry.body.role}  ${localTime(entry.atMs)}  `;
      io.stdout.line(`${style.dim(head)}${clipped(snippet, Math.max(40, io.stdout.columns - head.length))}`);
    }
    if (nextCursor !== undefined) io.stderr.line(`More: --cursor ${nextCursor}`);
    return exitCode.ok;
  });
}
