import { createReadStream } from "node:fs";
import type { ImportResult } from "@turnkeeper/state-store";
import { cliError, systemCodeOf } from "../cli-error.ts";
import { openStore } from "../command-context.ts";
import type { CommonFlags } from "../command-context.ts";
import { complain } from "../command-io.ts";
import type { CommandIo } from "../command-io.ts";
import { counted } from "../display/count-text.ts";
import { exitCode } from "../exit-code.ts";
import { withStore } from "../observer.ts";
import { absolutePath } from "../places.ts";
import { deleteCommand, stopCommand } from "../printed-command.ts";
import { asMistakeOf, readSessionFile } from "../session-import.ts";
import { printJson, sessionIdOf } from "./session-command.ts";

function refuse(
  io: CommandIo,
  { path, sessionId }: { readonly path: string; readonly sessionId: string },
  result: Exclude<ImportResult, { kind: "imported" }>,
): number {
  if (result.kind === "exists") {
    const other = `Import it under another id with --as, or delete the one that is there: ${deleteCommand(path, sessionId)}`;
    complain(io, `Session ${sessionId} is in this store already; nothing was imported. ${other}`);
    return exitCode.failed;
  }
  const { pid, host } = result.lease.holder;
  complain(io, `Session ${sessionId} is held by pid ${pid} on ${host}; nothing was imported. Stop its turn first.`);
  io.stderr.line(`next: ${stopCommand(path, sessionId)}`);
  return exitCode.busy;
}

/** `turnkeeper sessions import FILE`: all of an exported session, or nothing. */
export async function importSession(
  io: CommandIo,
  file: string,
  flags: CommonFlags & { readonly as?: string },
): Promise<number> {
  const wanted = flags.as === undefined ? undefined : await sessionIdOf(flags.as);
  const isStdin = file === "-";
  const name = isStdin ? "stdin" : file;
  const chunks: AsyncIterable<Uint8Array> = isStdin ? io.stdin : createReadStream(absolutePath(io, file));
  let records;
  try {
    records = await readSessionFile(name, chunks, wanted);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === undefined || !/^E[A-Z]+$/.test(code)) throw error;
    throw cliError("USAGE", `Could not import ${name}: it cannot be read (${code}).`, error);
  }
  const sessionId = await sessionIdOf(records.session.sessionId);
  return withStore(
    io,
    flags,
    async (store, { store: { path } }) => {
      const result = await store.sessions.importSession(records).catch((error: unknown) => {
        throw asMistakeOf(name, error);
      });
      if (flags.json) printJson(io, { session: sessionId, imported: result.kind === "imported" });
      if (result.kind === "imported") {
        io.stderr.line(`Session ${sessionId} imported, ${counted(records.entries.length, "line")} of transcript.`);
        return exitCode.ok;
      }
      return refuse(io, { path, sessionId }, result);
    },
    openStore,
  );
}
