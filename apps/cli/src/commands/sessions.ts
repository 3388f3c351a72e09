import { createInterface } from "node:readline/promises";
import type { StateStore, Violation } from "@turnkeeper/state-store";
import { verifyRecords } from "@turnkeeper/state-store";
import { cliError } from "../cli-error.ts";
import type { CommonFlags } from "../command-context.ts";
import { complain } from "../command-io.ts";
import type { CommandIo } from "../command-io.ts";
import { clipped, styleOf } from "../display/style.ts";
import { entryText, inputText, localTime, table } from "../display/transcript-text.ts";
import { exitCode } from "../exit-code.ts";
import { endLeftProcesses } from "../left-processes.ts";
import { withObserved, withStore } from "../observer.ts";
import { entryJson, exportLines, recordsJson, sessionJson } from "../session-json.ts";

/** Checked by its owner, which is loaded for that alone: a list of sessions does without it. */
async function sessionIdOf(id: string): Promise<string> {
  const { checkedSessionId } = await import("@turnkeeper/agent-core");
  return checkedSessionId(id);
}

function unknownSession(sessionId: string): Error {
  return cliError("NOT_FOUND", `There is no session ${sessionId} in this store.`);
}

function printJson(io: CommandIo, value: unknown): void {
  io.stdout.line(JSON.stringify(value));
}

/** `turnkeeper sessions list`. */
export async function listSessions(
  io: CommandIo,
  flags: CommonFlags & { readonly limit: number; readonly cursor?: string },
): Promise<number> {
  return withStore(io, flags, async (store) => {
    const { limit, cursor } = flags;
    const { sessions, nextCursor } = await store.sessions.list({ limit, ...(cursor === undefined ? {} : { cursor }) });
    if (flags.json) {
      printJson(io, { sessions: sessions.map(sessionJson), ...(nextCursor === undefined ? {} : { nextCursor }) });
      return exitCode.ok;
    }
    if (sessions.length === 0) io.stderr.line("No sessions yet.");
    const rows = sessions.map((one) => [
      one.sessionId,
      `${one.entryCount} entries`,
      `changed ${localTime(one.updatedAtMs)}`,
    ]);
    for (const line of table(rows)) io.stdout.line(line);
    if (nextCursor !== undefined) io.stderr.line(`More: --cursor ${nextCursor}`);
    return exitCode.ok;
  });
}

/** `turnkeeper sessions show ID`. */
export async function showSession(io: CommandIo, id: string, flags: CommonFlags): Promise<number> {
  const sessionId = await sessionIdOf(id);
  return withStore(io, flags, async (store) => {
    const records = await store.sessions.records(sessionId);
    if (!records) throw unknownSession(sessionId);
    if (flags.json) {
      printJson(io, recordsJson(records));
      return exitCode.ok;
    }
    const style = styleOf(io.stdout.hasColour);
    for (const entry of records.entries) {
      io.stdout.line(entryText(entry, style, io.stdout.columns));
      await io.stdout.ready();
    }
    for (const input of records.inputs)
      if (input.state !== "settled" || input.end !== "answered")
        io.stdout.line(style.dim(inputText(input, records.turns)));
    return exitCode.ok;
  });
}

/** `turnkeeper sessions search TEXT`. */
export async function searchSessions(
  io: CommandIo,
  text: string,
  flags: CommonFlags & { readonly session?: string; readonly limit: number },
): Promise<number> {
  const sessionId = flags.session === undefined ? undefined : await sessionIdOf(flags.session);
  if (text === "") throw cliError("USAGE", "Nothing to look for: the text is empty.");
  return withStore(io, flags, async (store) => {
    const hits = await store.transcript.search(text, {
      limit: flags.limit,
      ...(sessionId === undefined ? {} : { sessionId }),
    });
    if (flags.json) {
      printJson(io, { hits: hits.map((hit) => ({ session: hit.sessionId, entry: entryJson(hit.entry) })) });
      return exitCode.ok;
    }
    if (hits.length === 0) io.stderr.line("Nothing found.");
    const style = styleOf(io.stdout.hasColour);
    for (const { sessionId: found, entry } of hits) {
      const { body } = entry;
      const all =
        body.role === "tool"
          ? JSON.stringify(body.output)
          : body.role === "assistant"
            ? body.parts.map((part) => ("text" in part ? part.text : "")).join("")
            : body.text;
      const from = Math.max(0, all.toLowerCase().indexOf(text.toLowerCase()) - 30);
      const head = `${found}  ${body.role}  ${localTime(entry.atMs)}  `;
      io.stdout.line(
        `${style.dim(head)}${clipped(`${from > 0 ? "…" : ""}${all.slice(from, from + 500)}`, Math.max(40, io.stdout.columns - head.length))}`,
      );
    }
    return exitCode.ok;
  });
}

/** `turnkeeper sessions export ID`. */
export async function exportSession(io: CommandIo, id: string, flags: CommonFlags): Promise<number> {
  const sessionId = await sessionIdOf(id);
  return withStore(io, flags, async (store) => {
    const records = await store.sessions.records(sessionId);
    if (!records) throw unknownSession(sessionId);
    for (const line of exportLines(records)) {
      io.stdout.line(line);
      await io.stdout.ready();
      if (io.stdout.isGone) break;
    }
    return exitCode.ok;
  });
}

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
