import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { counted } from "../display/count-text.ts";
import { spoolLines } from "../display/transcript-text.ts";
import { exitCode } from "../exit-code.ts";
import { nextAfterViolations } from "../next-step.ts";
import { withObserved } from "../observer.ts";
import { storeExists } from "../store-location.ts";
import { verifyStore } from "../store-verification.ts";
import { printJson, sessionIdOf, unknownSession } from "./session-command.ts";

/** `turnkeeper sessions verify [ID]`: every violation with its rows, and what to type next. Changes nothing. */
export async function verifySessions(io: CommandIo, id: string | undefined, flags: CommonFlags): Promise<number> {
  const only = id === undefined ? undefined : await sessionIdOf(id);
  return withObserved(io, flags, async ({ context, store, presence }) => {
    const { path, url, shown } = context.store;
    const isFile = url === undefined && (await storeExists(path));
    const found = await verifyStore({ store, presence, ...(isFile ? { path } : {}) }, only);
    if (!found) throw unknownSession(only ?? "");
    const { violations, left, sessionCount } = found;
    // No violation: it is on its way back. Said where the store is looked at, since it is part of what was produced.
    for (const line of spoolLines(await store.spool.waiting(only))) io.stderr.line(line);
    for (const { session, detail } of left)
      io.stderr.line(`left  ${session}  ${detail}; the next turn on the session settles what it left`);
    if (flags.json) printJson(io, { violations, ...(left.length === 0 ? {} : { left }) });
    else {
      for (const { rule, session, detail } of violations) io.stdout.line(`${rule}  ${session}  ${detail}`);
      io.stderr.line(
        `${counted(sessionCount, "session")} verified, ${violations.length === 0 ? "no violation" : counted(violations.length, "violation")}.`,
      );
    }
    for (const line of nextAfterViolations(shown, { violations, left })) io.stderr.line(`next: ${line}`);
    return violations.length === 0 ? exitCode.ok : exitCode.failed;
  });
}
