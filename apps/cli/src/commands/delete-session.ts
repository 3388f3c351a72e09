import { createInterface } from "node:readline/promises";
import { cliError } from "../cli-error.ts";
import type { CommonFlags } from "../command-context.ts";
import { complain } from "../command-io.ts";
import type { CommandIo } from "../command-io.ts";
import { exitCode } from "../exit-code.ts";
import { endLeftProcesses } from "../left-processes.ts";
import { withObserved } from "../observer.ts";
import { stopCommand } from "../printed-command.ts";
import { printJson, sessionIdOf, unknownSession } from "./session-command.ts";

async function isSure(io: CommandIo, sessionId: string): Promise<boolean> {
  const reader = createInterface({ input: io.stdin, output: io.stderr.stream });
  try {
    const answer = await reader.question(`Delete session ${sessionId} and everything in it? [y/N] `);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    reader.close();
  }
}

/** `turnkeeper sessions delete ID`. */
export async function deleteSession(
  io: CommandIo,
  id: string,
  flags: CommonFlags & { readonly yes?: boolean },
): Promise<number> {
  const sessionId = await sessionIdOf(id);
  return withObserved(io, flags, async ({ context, store, presence }) => {
    if (!(await store.sessions.read(sessionId))) throw unknownSession(sessionId);
    const canAsk = io.stdin.isTTY && io.stderr.isTerminal;
    if (!flags.yes && canAsk && !(await isSure(io, sessionId))) throw cliError("REFUSED", "Nothing was deleted.");
    // A turn that its process left behind holds nothing: it is settled before the session counts as held.
    const { reapTurns } = await import("@turnkeeper/agent-core");
    await reapTurns({ store, presence, endProcesses: endLeftProcesses }, sessionId);
    const result = await store.sessions.delete(sessionId);
    if (result.kind === "unknown") throw unknownSession(sessionId);
    if (flags.json) printJson(io, { session: sessionId, deleted: result.kind === "deleted" });
    if (result.kind !== "held") return exitCode.ok;
    const { pid, host } = result.lease.holder;
    complain(io, `Session ${sessionId} is held by pid ${pid} on ${host}; nothing was deleted. Stop its turn first.`);
    io.stderr.line(`next: ${stopCommand(context.store.shown, sessionId)}`);
    return exitCode.busy;
  });
}
