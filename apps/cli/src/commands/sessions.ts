import { createInterface } from "node:readline/promises";
import type { StateStore, Violation } from "@turnkeeper/state-store";
import { verifyRecords } from "@turnkeeper/state-store";
import { cliError } from "../cli-error.ts";
import type { CommonFlags } from "../command-context.ts";
import { complain } from "../command-io.ts";
import type { CommandIo } from "../command-io.ts";
import { spoolLines } from "../display/transcript-text.ts";
import { exitCode } from "../exit-code.ts";
import { endLeftProcesses } from "../left-processes.ts";
import { withObserved, withStore } from "../observer.ts";
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
  return withObserved(io, flags, async ({ store, presence }) => {
    if (!(await store.sessions.read(sessionId))) throw unknownSession(sessionId);
    const canAsk = io.stdin.isTTY && io.stderr.isTerminal;
    if (!flags.yes && canAsk && !(await isSure(io, sessionId))) throw cliError("REFUSED", "Nothing was deleted.");
    // A turn that its process left behind holds nothing: it is settled before the session counts as held.
    const { reapTurns } = await import("@turnkeeper/agent-core");
    await reapTurns({ store, presence, endProcesses: endLeftProcesses }, sessionId);
    const result = await store.sessions.delete(sessionId);
    if (result.kind === "unknown") throw unknownSession(sessionId);
    if (flags.json) printJson(io, { session: sessionId, deleted: result.kind === "deleted" });
    if (result.kind === "deleted") return exitCode.ok;
    const { pid, host } = result.lease.holder;
    complain(
      io,
      `Session ${sessionId} is held by pid ${pid} on ${host}; nothing was deleted. Stop its turn first: turnkeeper stop ${sessionId}`,
    );
    return exitCode.busy;
  });
}

async function* sessionIds(store: StateStore): AsyncGenerator<string> {
  let cursor: string | undefined;
  do {
    const page = await store.sessions.list({ limit: 200, ...(cursor === undefined ? {} : { cursor }) });
    for (const { sessionId } of page.sessions) yield sessionId;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

async function violationsOf(store: StateStore, sessionId: string): Promise<readonly Violation[] | undefined> {
  const records = await store.sessions.records(sessionId);
  return records && verifyRecords(records);
}

/** `turnkeeper sessions verify [ID]`. */
export async function verifySessions(io: CommandIo, id: string | undefined, flags: CommonFlags): Promise<number> {
  const only = id === undefined ? undefined : await sessionIdOf(id);
  return withStore(io, flags, async (store) => {
    const violations: Violation[] = [];
    let count = 0;
    if (only !== undefined) {
      const found = await violationsOf(store, only);
      if (!found) throw unknownSession(only);
      violations.push(...found);
      count = 1;
    } else {
      for await (const sessionId of sessionIds(store)) {
        violations.push(...((await violationsOf(store, sessionId)) ?? []));
        count++;
      }
    }
    // No violation: it is on its way back. Said where the store is looked at, since it is part of what was produced.
    for (const line of spoolLines(await store.spool.waiting(only))) io.stderr.line(line);
    if (flags.json) printJson(io, { violations });
    else {
      for (const { rule, session, detail } of violations) io.stdout.line(`${rule}  ${session}  ${detail}`);
      io.stderr.line(
        violations.length === 0
          ? `${count} sessions verified, no violation.`
          : `${count} sessions verified, ${violations.length} violations.`,
      );
    }
    return violations.length === 0 ? exitCode.ok : exitCode.failed;
  });
}
