import { isUtf8 } from "node:buffer";
import type { Stats } from "node:fs";
import type { ToolContext } from "@turnkeeper/agent-core";
import { CodedError } from "@turnkeeper/kernel";
import { z } from "zod";
import { throwIfInterrupted, toolError } from "./errors.ts";
import { fileError, quoted } from "./file-error.ts";
import { changedSince, checkReplaceable, replaceFile } from "./file-replacement.ts";
import type { FileToolDeps } from "./file-tool-deps.ts";
import { resolveFileToolsOptions } from "./file-tools-options.ts";
import type { FileToolsOptions } from "./file-tools-options.ts";
import { nearestLines } from "./nearest-lines.ts";
import { openRegular } from "./regular-file.ts";
import { createSeenFiles } from "./seen-files.ts";
import type { SeenFiles } from "./seen-files.ts";
import { applyEdit } from "./text-edit.ts";
import type { TextTool } from "./text-tool.ts";
import { unifiedDiff } from "./unified-diff.ts";
import { locate } from "./workspace-path.ts";
import type { WorkspacePath } from "./workspace-path.ts";

export interface EditFileInput {
  readonly path: string;
  readonly old_text: string;
  readonly new_text: string;
  readonly replace_all?: boolean | undefined;
}

const boundMs = 60_000;
// A change of a larger file is a program's work: the whole text is held in memory several times.
const editBytesMax = 16_777_216;
const shownDiffLinesMax = 200;
const nearLinesMax = 3;
const byteOrderMark = "\uFEFF";

/**
 * The tool `edit_file`: replaces exact text inside a text file of the workspace and answers a unified diff. What it
 * replaces must stand there once, unless all of it is asked for. Line ends, byte order mark, mode and (as root) owner
 * stay as they are; a reader sees the old content or the new. Rejects with `FILE_CHANGED` when the file is not the one
 * that this session has seen; edits of one file by one process take their turns.
 */
export function createEditFileTool(deps: FileToolDeps, options?: FileToolsOptions): TextTool<EditFileInput> {
  const settings = resolveFileToolsOptions("createEditFileTool", options);
  const seen = deps.seen ?? createSeenFiles();
  return Object.freeze<TextTool<EditFileInput>>({
    name: "edit_file",
    description:
      "Replaces exact text in a text file inside the workspace folder and answers the change as a diff. " +
      "old_text must stand in the file exactly once, white space included; give enough lines around it, or set replace_all. " +
      "To make a new file, or to replace all of one, use write_file.",
    input: z.strictObject({
      path: z.string().min(1).describe("Relative to the workspace folder."),
      old_text: z.string().min(1).describe("The text to replace, exactly as it stands in the file."),
      new_text: z.string().describe("What comes in its place; empty to delete it."),
      replace_all: z.boolean().optional().describe("Replace it everywhere it stands. Default false."),
    }),
    needsApproval: true,
    concurrency: "exclusive",
    traits: { mutates: true },
    boundMs,
    async execute(input: EditFileInput, context: ToolContext) {
      throwIfInterrupted(context.signal, "edit the file");
      if (input.old_text === input.new_text) {
        throw toolError("EDIT_REFUSED", "old_text and new_text are the same: there is nothing to do.");
      }
      const rules = { ...settings, workspace: context.workspace };
      const { real } = await locate(input.path, rules, "edit");
      return seen.inTurn(real, async () => {
        try {
          const target = await locate(input.path, rules, "edit");
          const basis = await readText(target, context, seen);
          const edited = editedText(input, basis.text);
          const content = Buffer.from(basis.mark + edited.text, "utf8");
          const written = await replaceFile(target, {
            content,
            temporaryName: `.turnkeeper-${deps.host.random.id()}.tmp`,
            signal: context.signal,
            basis: basis.stats,
          });
          seen.note(context.sessionId, target.real, written);
          return edited.answer;
        } catch (error) {
          throw CodedError.is(error) ? error : fileError(error, "edit", input.path);
        }
      });
    },
  });
}

interface EditBasis {
  readonly text: string;
  /** The byte order mark, or nothing. */
  readonly mark: string;
  readonly stats: Stats;
}

async function readText(target: WorkspacePath, context: ToolContext, seen: SeenFiles): Promise<EditBasis> {
  const { shown, real } = target;
  const handle = await openRegular(target, "edit");
  try {
    await checkReplaceable(target, "edit");
    const stats = await handle.stat();
    if (seen.hasChanged(context.sessionId, real, stats)) throw changedSince(shown, "since it was read");
    if (stats.size > editBytesMax) {
      throw toolError("FILE_UNUSABLE", `Could not edit ${quoted(shown)}: it is larger than ${editBytesMax} bytes.`);
    }
    const bytes = await handle.readFile();
    if (bytes.includes(0) || !isUtf8(bytes)) {
      throw toolError("FILE_UNUSABLE", `Could not edit ${quoted(shown)}: it is not UTF-8 text, and would be damaged.`);
    }
    const whole = bytes.toString("utf8");
    const mark = whole.startsWith(byteOrderMark) ? byteOrderMark : "";
    return { text: whole.slice(mark.length), mark, stats };
  } finally {
    await handle.close();
  }
}

function editedText(input: EditFileInput, text: string): { readonly text: string; readonly answer: string } {
  const all = input.replace_all ?? false;
  const outcome = applyEdit(text, { find: input.old_text, replace: input.new_text, all });
  const shown = quoted(input.path);
  switch (outcome.kind) {
    case "no-match":
      throw toolError("EDIT_REFUSED", `old_text does not stand in ${shown}.${nearText(text, input.old_text)}`);
    case "many-matches": {
      const more = outcome.count > outcome.lines.length ? ", ..." : "";
      throw toolError(
        "EDIT_REFUSED",
        `old_text stands in ${shown} ${outcome.count} times, at lines ${outcome.lines.join(", ")}${more}. ` +
          "Give more of the lines around the one you mean, or set replace_all.",
      );
    }
    case "edited": {
      const { length } = outcome.changes;
      const head = `Edited ${shown}: ${length === 1 ? "1 replacement" : `${length} replacements`}.`;
      return { text: outcome.text, answer: `${head}\n${cut(unifiedDiff(text, outcome.changes))}` };
    }
  }
}

/** What may have been meant, for a model that remembers a file not quite as it is. */
function nearText(text: string, wanted: string): string {
  const near = nearestLines(text, wanted, nearLinesMax);
  if (near.length === 0) return " Read the file again; nothing in it is like it.";
  const lines = near.map(({ line, text: shown }) => `${line}: ${shown}`);
  const hint = near.some(({ likeness }) => likeness === 1)
    ? " Look at white space and at the lines around it."
    : " Read the file again.";
  return `${hint} The nearest lines are:\n${lines.join("\n")}`;
}

function cut(diff: string): string {
  const lines = diff.split("\n");
  if (lines.length <= shownDiffLinesMax) return diff;
  const rest = lines.length - shownDiffLinesMax;
  return [...lines.slice(0, shownDiffLinesMax), `[... ${rest} more lines of the diff]`].join("\n");
}
