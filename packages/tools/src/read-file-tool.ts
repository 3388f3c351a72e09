import { isUtf8 } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import type { ToolContext } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import { z } from "zod";
import { throwIfInterrupted, toolError } from "./errors.ts";
import { fileError, quoted } from "./file-error.ts";
import type { FileToolDeps } from "./file-tool-deps.ts";
import { resolveFileToolsOptions } from "./file-tools-options.ts";
import type { FileToolsOptions, ResolvedFileToolsOptions } from "./file-tools-options.ts";
import { cutWindow, fill, skipLines } from "./line-window.ts";
import type { LineWindow, ReadBytes } from "./line-window.ts";
import { openRegular } from "./regular-file.ts";
import type { TextTool } from "./text-tool.ts";
import { readableText } from "./utf8.ts";
import { locate } from "./workspace-path.ts";

export interface ReadFileInput {
  readonly path: string;
  readonly offset?: number | undefined;
  readonly limit?: number | undefined;
}

// What git looks at to tell binary from text.
const sniffedBytes = 8_000;

const boundMs = 60_000;

/**
 * The tool `read_file`: lines of a text file inside the workspace, as they stand, with a note in brackets behind them
 * when something was left out. Constant memory whatever the file's size; never blocks on a pipe or a device.
 */
export function createReadFileTool(
  deps: Pick<FileToolDeps, "seen">,
  options?: FileToolsOptions,
): TextTool<ReadFileInput> {
  const settings = resolveFileToolsOptions("createReadFileTool", options);
  return Object.freeze<TextTool<ReadFileInput>>({
    name: "read_file",
    description:
      "Reads a text file inside the workspace folder and answers its lines as they stand. " +
      "A note in square brackets behind them says where to go on when the file is longer.",
    input: z.strictObject({
      path: z.string().min(1).describe("Relative to the workspace folder."),
      offset: z.int().min(1).max(1_000_000_000).optional().describe("The first line to read. Default 1."),
      limit: z
        .int()
        .min(1)
        .max(settings.readLinesMax)
        .optional()
        .describe(`How many lines to read. Default ${settings.readLinesMax}.`),
    }),
    needsApproval: false,
    boundMs,
    async execute(input: ReadFileInput, context: ToolContext) {
      throwIfInterrupted(context.signal, "read the file");
      const target = await locate(input.path, { ...settings, workspace: context.workspace }, "read");
      const handle = await openRegular(target, "read");
      try {
        const stats = await handle.stat();
        const answer = await readWindow(handle, input, settings, context);
        deps.seen?.note(context.sessionId, target.real, stats);
        return answer;
      } catch (error) {
        throw CodedError.is(error) ? error : fileError(error, "read", input.path);
      } finally {
        await handle.close();
      }
    },
  });
}

async function readWindow(
  handle: FileHandle,
  input: ReadFileInput,
  settings: ResolvedFileToolsOptions,
  context: ToolContext,
): Promise<string> {
  const read: ReadBytes = async (into) => {
    throwIfInterrupted(context.signal, "read on");
    context.progress("reading");
    return (await handle.read(into, 0, into.length, null)).bytesRead;
  };
  const start = await fill(read, Buffer.alloc(0), sniffedBytes);
  if (start.includes(0)) {
    const { size } = await handle.stat();
    throw toolError(
      "FILE_UNUSABLE",
      `The file ${quoted(input.path)} is binary (${size} bytes); read_file shows text only.`,
    );
  }
  const firstLine = input.offset ?? 1;
  const { skippedCount, rest } = await skipLines(read, start, firstLine - 1);
  const bytes = await fill(read, rest, Math.max(rest.length, settings.readBytesMax + 1));
  if (bytes.length === 0 && firstLine > 1) {
    throw toolError(
      "FILE_UNUSABLE",
      `The file ${quoted(input.path)} has ${skippedCount} lines; line ${firstLine} does not exist.`,
    );
  }
  const window = cutWindow(bytes, { linesMax: input.limit ?? settings.readLinesMax, bytesMax: settings.readBytesMax });
  return answerOf(window, firstLine);
}

function answerOf(window: LineWindow, firstLine: number): string {
  if (window.bytes.length === 0) return "(the file is empty)";
  const text = readableText(window.bytes);
  const notes: string[] = [];
  if (!isUtf8(window.bytes) || window.bytes.includes(0)) {
    notes.push("[bytes that are not UTF-8 text are shown as \uFFFD]");
  }
  const nextLine = firstLine + window.lineCount;
  if (window.cutLine) {
    notes.push(
      `[line ${firstLine} is longer than what can be shown, this is its beginning; the next line, if any, is offset ${nextLine}]`,
    );
  } else if (window.more) {
    notes.push(`[lines ${firstLine} to ${nextLine - 1}; the file goes on, continue with offset ${nextLine}]`);
  }
  if (notes.length === 0) return text;
  return `${text}${text.endsWith("\n") ? "" : "\n"}${notes.join("\n")}`;
}
