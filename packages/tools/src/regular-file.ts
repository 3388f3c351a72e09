import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import type { CodedError } from "@turnkeeper/kernel";
import { toolError } from "./errors.ts";
import { fileError, quoted, systemCodeOf } from "./file-error.ts";
import { kindOf } from "./workspace-path.ts";
import type { WorkspacePath } from "./workspace-path.ts";

/** Opens a regular file for reading, and only the one that was located; rejects with `FILE_UNUSABLE`. */
export async function openRegular({ shown, real, stats }: WorkspacePath, attempt: string): Promise<FileHandle> {
  // Nothing but a regular file is opened at all: a pipe would block, and opening a device can already do something.
  if (stats === undefined)
    throw toolError("FILE_UNUSABLE", `Could not ${attempt} ${quoted(shown)}: it does not exist.`);
  if (!stats.isFile()) {
    const hint = stats.isDirectory() ? "; list_files shows what is in it" : "";
    throw toolError("FILE_UNUSABLE", `Could not ${attempt} ${quoted(shown)}: it is a ${kindOf(stats)}${hint}.`);
  }
  const handle = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW).catch(
    (error: unknown) => {
      throw systemCodeOf(error) === "ELOOP" ? replacedMeanwhile(shown, attempt) : fileError(error, attempt, shown);
    },
  );
  const opened = await handle.stat();
  if (opened.dev === stats.dev && opened.ino === stats.ino) return handle;
  await handle.close();
  throw replacedMeanwhile(shown, attempt);
}

function replacedMeanwhile(shown: string, attempt: string): CodedError {
  return toolError(
    "FILE_UNUSABLE",
    `Could not ${attempt} ${quoted(shown)}: it was replaced in the same moment; try again.`,
  );
}
