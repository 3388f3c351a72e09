import path from "node:path";
import { cliError } from "./cli-error.ts";
import type { CommandIo } from "./command-io.ts";

/** The folders that paths on a command line are relative to. */
export type Places = Pick<CommandIo, "workingFolder" | "userFolder">;

/** The folder the user stands in. Throws `USAGE` where it was deleted under the shell. */
export function workingFolderOf({ workingFolder }: Places): string {
  if (workingFolder !== undefined) return workingFolder;
  throw cliError("USAGE", "The current folder does not exist any more; change to another one.");
}

/** A path as a shell would read it, `~` too: settings and environment files are not read by one. */
export function absolutePath(places: Places, text: string, from?: string): string {
  const expanded = text === "~" || text.startsWith("~/") ? path.join(places.userFolder, text.slice(1)) : text;
  return path.isAbsolute(expanded) ? expanded : path.resolve(from ?? workingFolderOf(places), expanded);
}
