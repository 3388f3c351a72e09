import type { ToolContext } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import { z } from "zod";
import { throwIfInterrupted } from "./errors.ts";
import { fileError, quoted } from "./file-error.ts";
import { changedSince, checkReplaceable, replaceFile } from "./file-replacement.ts";
import type { FileToolDeps } from "./file-tool-deps.ts";
import { resolveFileToolsOptions } from "./file-tools-options.ts";
import type { FileToolsOptions } from "./file-tools-options.ts";
import { createSeenFiles } from "./seen-files.ts";
import type { TextTool } from "./text-tool.ts";
import { locate } from "./workspace-path.ts";

export interface WriteFileInput {
  readonly path: string;
  readonly content: string;
}

const boundMs = 60_000;

/**
 * The tool `write_file`: puts a whole text file in place inside the workspace. A reader sees the old content or the
 * new, never a part; a failure or a stop leaves the old. The mode of a file that is there is kept. Rejects with
 * `FILE_CHANGED` when the file is not the one that this session has seen.
 */
export function createWriteFileTool(deps: FileToolDeps, options?: FileToolsOptions): TextTool<WriteFileInput> {
  const settings = resolveFileToolsOptions("createWriteFileTool", options);
  const seen = deps.seen ?? createSeenFiles();
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
      const rules = { ...settings, workspace: context.workspace };
      const { real } = await locate(input.path, rules, "write");
      return seen.inTurn(real, async () => {
        const content = Buffer.from(input.content, "utf8");
        try {
          const target = await locate(input.path, rules, "write");
          const { stats } = target;
          await checkReplaceable(target, "write");
          if (stats && seen.hasChanged(context.sessionId, target.real, stats)) {
            throw changedSince(input.path, "since it was read");
          }
          const written = await replaceFile(target, {
            content,
            temporaryName: `.turnkeeper-${deps.host.random.id()}.tmp`,
            signal: context.signal,
          });
          seen.note(context.sessionId, target.real, written);
          return `Wrote ${content.length} bytes to ${quoted(input.path)} (${stats ? "replaced" : "new file"}).`;
        } catch (error) {
          throw CodedError.is(error) ? error : fileError(error, "write", input.path);
        }
      });
    },
  });
}
