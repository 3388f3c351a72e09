/** What the `sessions` commands share. */
import { CodedError } from "@turnkeeper/kernel";
import { cliError } from "../cli-error.ts";
import type { CommandIo } from "../command-io.ts";
import { jsonLine } from "../json-line.ts";

/** Checked by its owner, which is loaded for that alone: a list of sessions does without it. */
export async function sessionIdOf(id: string): Promise<string> {
  const { checkedSessionId } = await import("@turnkeeper/agent-core");
  return checkedSessionId(id);
}

export function unknownSession(sessionId: string): Error {
  return cliError("NOT_FOUND", `There is no session ${sessionId} in this store.`);
}

/** Reads a page; a cursor that the store did not give is a mistake of the command line. */
export async function pageAfter<Page>(
  cursor: string | undefined,
  read: (after: { readonly cursor?: string }) => Promise<Page>,
): Promise<Page> {
  if (cursor === undefined) return read({});
  try {
    return await read({ cursor });
  } catch (error) {
    if (!CodedError.is(error, "STORE_CONTRACT")) throw error;
    throw cliError("USAGE", `Cannot use --cursor ${JSON.stringify(cursor)}: no page ended there.`, error);
  }
}

export function printJson(io: CommandIo, value: unknown): void {
  io.stdout.line(jsonLine(value));
}
