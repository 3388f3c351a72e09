/** What the `sessions` commands share. */
import { cliError } from "../cli-error.ts";
import type { CommandIo } from "../command-io.ts";

/** Checked by its owner, which is loaded for that alone: a list of sessions does without it. */
export async function sessionIdOf(id: string): Promise<string> {
  const { checkedSessionId } = await import("@turnkeeper/agent-core");
  return checkedSessionId(id);
}

export function unknownSession(sessionId: string): Error {
  return cliError("NOT_FOUND", `There is no session ${sessionId} in this store.`);
}

export function printJson(io: CommandIo, value: unknown): void {
  io.stdout.line(JSON.stringify(value));
}
