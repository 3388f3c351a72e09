import { checkedSessionId } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import { cliError } from "../cli-error.ts";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { stateJson, stateLines } from "../display/session-state-text.ts";
import { styleOf } from "../display/style.ts";
import { exitCode } from "../exit-code.ts";
import { withObserved } from "../observer.ts";
import { readSessionState } from "../session-state.ts";

/** `turnkeeper why ID`: who holds a session, what waits, and what happens next. */
export async function why(io: CommandIo, id: string, flags: CommonFlags): Promise<number> {
  const sessionId = checkedSessionId(id);
  return withObserved(io, flags, async (observed) => {
    if (!(await observed.store.sessions.read(sessionId)))
      throw cliError("NOT_FOUND", `There is no session ${sessionId} in this store.`);
    const state = await readSessionState({ ...observed, place: observed.context.place }, sessionId);
    const nowMs = systemHost.clock.wallMs();
    if (flags.json) io.stdout.line(JSON.stringify(stateJson(state, nowMs)));
    else for (const line of stateLines(state, nowMs, styleOf(io.stdout.hasColour))) io.stdout.line(line);
    return exitCode.ok;
  });
}
