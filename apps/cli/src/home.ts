import { constants } from "node:fs";
import { access, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { cliError, systemCodeOf } from "./cli-error.ts";
import type { CommandIo } from "./command-io.ts";
import { absolutePath } from "./places.ts";
import type { Places } from "./places.ts";

/** Where the home folder is and who said so. */
export interface HomeLocation {
  readonly folder: string;
  readonly source: "--home" | "TURNKEEPER_HOME" | "default";
}

export function locateHome(io: Places & Pick<CommandIo, "environment">, flag?: string): HomeLocation {
  if (flag !== undefined) {
    if (flag === "") throw cliError("USAGE", "--home needs a folder, got an empty value.");
    return { folder: absolutePath(io, flag), source: "--home" };
  }
  const fromEnvironment = io.environment["TURNKEEPER_HOME"];
  if (fromEnvironment) return { folder: absolutePath(io, fromEnvironment), source: "TURNKEEPER_HOME" };
  return { folder: path.join(io.userFolder, ".turnkeeper"), source: "default" };
}

/** What is at the home's place; told apart before a database says it less well. */
export type HomeState = "folder" | "missing" | "not-a-folder";

export async function homeState(folder: string): Promise<HomeState> {
  try {
    return (await stat(folder)).isDirectory() ? "folder" : "not-a-folder";
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === "ENOENT") return "missing";
    if (code === "ENOTDIR") return "not-a-folder";
    throw unusable(folder, error);
  }
}

function unusable(folder: string, error: unknown): Error {
  const code = systemCodeOf(error);
  const problems: Readonly<Record<string, string>> = {
    ENOENT: `its parent folder ${path.dirname(folder)} does not exist; make that one first, or choose another with --home`,
    EACCES: "this user may not use it; change its permissions, or choose another with --home",
    EPERM: "this user may not use it; change its permissions, or choose another with --home",
    EROFS: "its file system is read-only; choose another with --home",
    ENAMETOOLONG: "its name is too long; choose another with --home",
    ENOSPC: "the disk is full; free some space",
  };
  return cliError(
    "HOME_UNUSABLE",
    `Cannot use the home folder ${folder}: ${problems[code ?? ""] ?? `${code ?? String(error)}; choose another with --home`}.`,
    error,
  );
}

/** Makes the home where it is missing, for this user alone; its parent must be there. Rejects with `HOME_UNUSABLE`. */
export async function ensureHome({ folder }: HomeLocation): Promise<void> {
  const state = await homeState(folder);
  if (state === "not-a-folder") {
    throw cliError(
      "HOME_UNUSABLE",
      `Cannot use the home folder ${folder}: it is, or lies below, a file; choose another with --home.`,
    );
  }
  try {
    if (state === "missing") await mkdir(folder, { mode: 0o700 });
    else await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    // Two first runs at once: the other one made it.
    if (systemCodeOf(error) === "EEXIST") return;
    throw unusable(folder, error);
  }
}
