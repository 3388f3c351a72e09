/**
 * Decides which paths a file tool may touch: those whose real place, links followed, is inside the workspace and not
 * among the forbidden ones. Decided before anything is opened: opening and closing an SQLite file in the process that
 * has it open as a store would cancel that store's locks.
 */

import type { Stats } from "node:fs";
import { lstat, realpath } from "node:fs/promises";
import path from "node:path";
import { CodedError } from "@turnkeeper/kernel";
import { toolError } from "./errors.ts";
import { fileError, quoted, systemCodeOf } from "./file-error.ts";
import { forbiddenPlaces } from "./forbidden-path.ts";
import { realPlace } from "./real-place.ts";

export interface WorkspacePath {
  /** As the model wrote it. */
  readonly shown: string;
  /** Absolute and without links, except for what does not exist yet. */
  readonly real: string;
  /** What stands there now; undefined when nothing does. Never a link. */
  readonly stats: Stats | undefined;
}

export interface WorkspaceRules {
  readonly workspace: string;
  readonly forbiddenPaths: readonly string[];
}

/** Finds the real place of a path; rejects with `PATH_REFUSED` or, where it cannot be looked at, `FILE_UNUSABLE`. */
export async function locate(shown: string, rules: WorkspaceRules, attempt: string): Promise<WorkspacePath> {
  if (shown.includes("\0")) throw refused(shown, "contains a NUL character");
  if (/^~(\/|$)/.test(shown))
    throw refused(shown, "begins with ~, which is not expanded; paths are relative to the workspace");
  const workspace = await realpath(rules.workspace).catch((error: unknown) => {
    throw fileError(error, "use the workspace", rules.workspace);
  });
  try {
    const real = await realPlace(path.resolve(workspace, shown));
    if (!isInside(workspace, real)) throw refused(shown, "is outside the workspace");
    const stats = await statsOf(real);
    if (await (await forbiddenPlaces(rules.forbiddenPaths)).cover(real, stats)) {
      throw refused(shown, "belongs to the session store and its settings, which no tool may touch");
    }
    return { shown, real, stats };
  } catch (error) {
    throw CodedError.is(error) ? error : fileError(error, attempt, shown);
  }
}

function isInside(folder: string, absolute: string): boolean {
  const relative = path.relative(folder, absolute);
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

async function statsOf(real: string): Promise<Stats | undefined> {
  try {
    return await lstat(real);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function refused(shown: string, reason: string): CodedError {
  return toolError("PATH_REFUSED", `The path ${quoted(shown)} ${reason}.`);
}

/** What kind of thing stands there, in words. */
export function kindOf(stats: Stats): string {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "folder";
  if (stats.isSymbolicLink()) return "link";
  if (stats.isFIFO()) return "named pipe";
  return stats.isSocket() ? "socket" : "device";
}
