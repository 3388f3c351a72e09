import type { Stats } from "node:fs";
import { access, constants, mkdir, open, realpath, rename, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import path from "node:path";
import type { ToolContext } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { z } from "zod";
import { throwIfInterrupted, toolError } from "./errors.ts";
import { fileError, quoted } from "./file-error.ts";
import { resolveFileToolsOptions } from "./file-tools-options.ts";
import type { FileToolsOptions } from "./file-tools-options.ts";
import type { TextTool } from "./text-tool.ts";
import { kindOf, locate } from "./workspace-path.ts";
import type { WorkspacePath } from "./workspace-path.ts";

export interface WriteFileInput {
  readonly path: string;
  readonly content: string;
}

const boundMs = 60_000;

/**
 * The tool `write_file`: puts a whole text file in place inside the workspace. A reader sees the old content or the
 * new, never a part; a failure or a stop leaves the old. The mode of a file that is there is kept.
 */
export function createWriteFileTool(
  deps: { readonly host: Host },
  options?: FileToolsOptions,
): TextTool<WriteFileInput> {
  const settings = resolveFileToolsOptions("createWriteFileTool", options);
  return Object.freeze<TextTool<WriteFileInput>>({
    name: "write_file",
    description:
      "Writes a whole text file inside the workspace folder, in place of the one that is there; missing folders are made.",
    input: z.strictObject({
      path: z.string().min(1).describe("Relative to the workspace folder."),
      content: z.string().describe("The whole content."),
    }),
    needsApproval: true,
    concurrency: "exclusive",
    traits: { mutates: true },
    boundMs,
    async execute(input: WriteFileInput, context: ToolContext) {
      throwIfInterrupted(context.signal, "write the file");
      const target = await locate(input.path, { ...settings, workspace: context.workspace }, "write");
      const content = Buffer.from(input.content, "utf8");
      try {
        await checkReplaceable(target);
        await replaceFile(target, content, `.turnkeeper-${deps.host.random.id()}.tmp`, context.signal);
      } catch (error) {
        throw CodedError.is(error) ? error : fileError(error, "write", input.path);
      }
      return `Wrote ${content.length} bytes to ${quoted(input.path)} (${target.stats ? "replaced" : "new file"}).`;
    },
  });
}

async function checkReplaceable({ shown, real, stats }: WorkspacePath): Promise<void> {
  if (stats === undefined) return;
  if (!stats.isFile()) {
    throw toolError("FILE_UNUSABLE", `Could not write ${quoted(shown)}: it is a ${kindOf(stats)}.`);
  }
  // Renaming over a file needs no right to write it: one that was made read-only would be lost.
  await access(real, constants.W_OK);
}

/** Writes beside the target and renames over it. */
async function replaceFile(
  target: WorkspacePath,
  content: Buffer,
  temporaryName: string,
  signal: AbortSignal,
): Promise<void> {
  const folder = path.dirname(target.real);
  await mkdir(folder, { recursive: true });
  // Somebody may have put a link where a folder was missing.
  if ((await realpath(folder)) !== folder) {
    throw toolError("PATH_REFUSED", `The path ${quoted(target.shown)} changed while it was being written.`);
  }
  const temporary = path.join(folder, temporaryName);
  const handle = await open(temporary, "wx");
  try {
    try {
      await handle.writeFile(content);
      if (target.stats) await takeOver(handle, target.stats);
      // Else a power cut after the rename could leave an empty file under the name.
      await handle.sync();
    } finally {
      await handle.close();
    }
    throwIfInterrupted(signal, "put the file in place");
    await rename(temporary, target.real);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Gives the new file the owner and the mode of the old. */
async function takeOver(handle: FileHandle, stats: Stats): Promise<void> {
  const own = await handle.stat();
  if (own.uid !== stats.uid || own.gid !== stats.gid) {
    // Only root may give a file away; otherwise it becomes ours, as when an editor saves it.
    await handle.chown(stats.uid, stats.gid).catch(() => undefined);
  }
  await handle.chmod(stats.mode & 0o7777);
}
