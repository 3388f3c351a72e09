import { checkedSessionId, readSessionState } from "@turnkeeper/agent-core";
import { sessionStateJson } from "@turnkeeper/gateway/json";
import { cliError } from "../cli-error.ts";
import type { CommonFlags } from "../command-context.ts";
import type { CommandIo } from "../command-io.ts";
import { stateLines } from "../display/session-state-text.ts";
import { styleOf } from "../display/style.ts";
import { exitCode } from "../exit-code.ts";
import { withObserved } from "../observer.ts";
import { runCommand } from "../printed-command.ts";
import { jsonLine } from "../json-line.ts";

/** `turnkeeper why ID`: who holds a session, what waits, and what happens next. */
export async function why(io: CommandIo, id: string, flags: CommonFlags): Promise<number> {
  const sessionId = checkedSessionId(id);
  return withObserved(io, flags, async (observed) => {
    if (!(await observed.store.sessions.read(sessionId)))
      throw cliError("NOT_FOUND", `There is no session ${sessionId} in this store.`);
    const state = await readSessionState(observed, sessionId);
    const { place } = observed.context;
    if (flags.json) {
      const startOne = `start one with: ${runCommand(place, sessionId)}`;
      io.stdout.line(jsonLine(sessionStateJson(state, startOne)));
      return exitCode.ok;
    }
    for (const line of stateLines(state, { style: styleOf(io.stdout.hasColour), place })) io.stdout.line(line);
    return exitCode.ok;
  });
}
