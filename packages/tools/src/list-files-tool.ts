import type { Stats } from "node:fs";
import { lstat, opendir, readlink } from "node:fs/promises";
import path from "node:path";
import type { ToolContext } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import { z } from "zod";
import { throwIfInterrupted, toolError } from "./errors.ts";
import { fileError, quoted, systemCodeOf } from "./file-error.ts";
import { resolveFileToolsOptions } from "./file-tools-options.ts";
import type { FileToolsOptions } from "./file-tools-options.ts";
import type { TextTool } from "./text-tool.ts";
import { kindOf, locate } from "./workspace-path.ts";

export interface ListFilesInput {
  readonly path?: string | undefined;
}

const boundMs = 60_000;

/**
 * The tool `list_files`: what stands in one folder of the workspace, a line each, sorted by name: `folder/`,
 * `name  SIZE bytes`, `name -> where a link leads`. Follows no link. Bounded in memory for any folder.
 */
export function createListFilesTool(options?: FileToolsOptions): TextTool<ListFilesInput> {
  const settings = resolveFileToolsOptions("createListFilesTool", options);
  return Object.freeze<TextTool<ListFilesInput>>({
    name: "list_files",
    description:
      "Lists one folder inside the workspace folder, sorted by name: folders end in /, files show their size in bytes, links where they lead.",
    input: z.strictObject({
      path: z
        .string()
        .min(1)
        .optional()
        .describe("Relative to the workspace folder. Default: the workspace folder itself."),
    }),
    needsApproval: false,
    boundMs,
    async execute(input: ListFilesInput, context: ToolContext) {
      throwIfInterrupted(context.signal, "list the folder");
      const shown = input.path ?? ".";
      const target = await locate(shown, { ...settings, workspace: context.workspace }, "list");
      if (target.stats === undefined)
        throw toolError("FILE_UNUSABLE", `Could not list ${quoted(shown)}: it does not exist.`);
      if (!target.stats.isDirectory()) {
        throw toolError(
          "FILE_UNUSABLE",
          `Could not list ${quoted(shown)}: it is a ${kindOf(target.stats)}, not a folder.`,
        );
      }
      try {
        const { names, totalCount } = await firstNames(target.real, settings.listEntriesMax, context);
        const lines = await Promise.all(names.map((name) => lineOf(target.real, name)));
        return answerOf(
          lines.filter((line) => line !== undefined),
          totalCount,
        );
      } catch (error) {
        throw CodedError.is(error) ? error : fileError(error, "list", shown);
      }
    },
  });
}

/** The first names in order, and how many there are. */
async function firstNames(
  folder: string,
  countMax: number,
  context: ToolContext,
): Promise<{ readonly names: readonly string[]; readonly totalCount: number }> {
  let names: string[] = [];
  let totalCount = 0;
  for await (const entry of await opendir(folder)) {
    throwIfInterrupted(context.signal, "list on");
    names.push(entry.name);
    totalCount += 1;
    if (names.length < 2 * countMax) continue;
    names = names.toSorted().slice(0, countMax);
    context.progress("listing");
  }
  return { names: names.toSorted().slice(0, countMax), totalCount };
}

/** Undefined for an entry that went away since its name was read. */
async function lineOf(folder: string, name: string): Promise<string | undefined> {
  const entry = path.join(folder, name);
  // A name with a line break must not pass for two entries.
  const shownName = /\p{Cc}/u.test(name) ? JSON.stringify(name) : name;
  try {
    return `${shownName}${await detailOf(entry, await lstat(entry))}`;
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function detailOf(entry: string, stats: Stats): Promise<string> {
  if (stats.isDirectory()) return "/";
  if (stats.isFile()) return `  ${stats.size} bytes`;
  return stats.isSymbolicLink() ? ` -> ${await readlink(entry)}` : `  (${kindOf(stats)})`;
}

function answerOf(lines: readonly string[], totalCount: number): string {
  if (totalCount === 0) return "(the folder is empty)";
  const missingCount = totalCount - lines.length;
  return missingCount === 0
    ? lines.join("\n")
    : `${lines.join("\n")}\n[${missingCount} more of ${totalCount} entries not shown]`;
}
