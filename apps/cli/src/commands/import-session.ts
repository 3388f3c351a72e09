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
import { asMistakeOf, readSessionFile } from "../session-import.ts";
import { printJson, sessionIdOf } from "./session-command.ts";

function refusal(sessionId: string, result: Exclude<ImportResult, { kind: "imported" }>): string {
  if (result.kind === "exists")
    return `Session ${sessionId} is in this store already; nothing was imported. Import it under another id with --as, or delete the one that is there: turnkeeper sessions delete ${sessionId}`;
  const { pid, host } = result.lease.holder;
  return `Session ${sessionId} is held by pid ${pid} on ${host}; nothing was imported. Stop its turn first: turnkeeper stop ${sessionId}`;
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
    async (store) => {
      const result = await store.sessions.importSession(records).catch((error: unknown) => {
        throw asMistakeOf(name, error);
      });
      if (flags.json) printJson(io, { session: sessionId, imported: result.kind === "imported" });
      if (result.kind === "imported") {
        io.stderr.line(`Session ${sessionId} imported, ${counted(records.entries.length, "line")} of transcript.`);
        return exitCode.ok;
      }
      complain(io, refusal(sessionId, result));
      return result.kind === "held" ? exitCode.busy : exitCode.failed;
    },
    openStore,
  );
}
