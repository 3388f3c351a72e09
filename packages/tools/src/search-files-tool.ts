import { messageOf } from "@turnkeeper/kernel";
import { realpath } from "node:fs/promises";
import type { ToolContext } from "@turnkeeper/agent-core";
import { z } from "zod";
import { throwIfInterrupted, toolError } from "./errors.ts";
import { quoted } from "./file-error.ts";
import type { SearchCounts, SearchMatch, SearchMessage, SearchRequest } from "./file-search.ts";
import type { FileToolDeps } from "./file-tool-deps.ts";
import { resolveFileToolsOptions } from "./file-tools-options.ts";
import type { FileToolsOptions } from "./file-tools-options.ts";
import type { TextTool } from "./text-tool.ts";
import { runWorker } from "./worker-task.ts";
import type { WorkerEnd } from "./worker-task.ts";
import { locate } from "./workspace-path.ts";

export interface SearchFilesInput {
  readonly pattern: string;
  readonly literal?: boolean | undefined;
  readonly ignore_case?: boolean | undefined;
  readonly path?: string | undefined;
  readonly glob?: string | undefined;
  readonly limit?: number | undefined;
}

// A thread in JavaScript ends within milliseconds of terminate(); one in a system call may never.
const terminateMs = 2_000;
const marginMs = 5_000;
const answerCharactersMax = 65_536;

const isSource = import.meta.url.endsWith(".ts");
const workerModule = new URL(`./search-worker${isSource ? ".ts" : ".js"}`, import.meta.url);

/**
 * The tool `search_files`: lines of the workspace's text files that fit a regular expression, as `path:line: text`,
 * in the order of paths. What `.gitignore` names, `node_modules`, binary and large files are left out; no link is
 * followed. It runs in a worker thread: a pattern that never ends is ended by `searchTimeoutMs`, or with the turn.
 */
export function createSearchFilesTool(
  deps: Pick<FileToolDeps, "host">,
  options?: FileToolsOptions,
): TextTool<SearchFilesInput> {
  const settings = resolveFileToolsOptions("createSearchFilesTool", options);
  const { searchTimeoutMs, searchMatchesMax } = settings;
  return Object.freeze<TextTool<SearchFilesInput>>({
    name: "search_files",
    description:
      "Searches the text files inside the workspace folder, line by line, and answers path:line: text for each line that fits. " +
      "What .gitignore names, node_modules, binary and very large files are left out.",
    input: z.strictObject({
      pattern: z.string().min(1).max(1_000).describe("A regular expression, as JavaScript has them."),
      literal: z.boolean().optional().describe("Whether the pattern is plain text. Default false."),
      ignore_case: z.boolean().optional().describe("Default false."),
      path: z
        .string()
        .min(1)
        .optional()
        .describe("The folder or file to look in, relative to the workspace folder. Default: all of it."),
      glob: z
        .string()
        .min(1)
        .max(1_000)
        .optional()
        .describe("Only files that fit, as a line of .gitignore: *.ts, src/**/*.css; !*.md leaves them out."),
      limit: z
        .int()
        .min(1)
        .max(searchMatchesMax)
        .optional()
        .describe(`The most lines to answer. Default ${searchMatchesMax}.`),
    }),
    needsApproval: false,
    boundMs: searchTimeoutMs + terminateMs + marginMs,
    async execute(input: SearchFilesInput, context: ToolContext) {
      throwIfInterrupted(context.signal, "search the files");
      const shown = input.path ?? ".";
      const target = await locate(shown, { ...settings, workspace: context.workspace }, "search");
      if (target.stats === undefined) {
        throw toolError("FILE_UNUSABLE", `Could not search ${quoted(shown)}: it does not exist.`);
      }
      const found = new FoundMatches(() => context.progress("searching"));
      const workerInput: SearchRequest = {
        workspace: await realpath(context.workspace),
        start: target.real,
        forbiddenPaths: settings.forbiddenPaths,
        pattern: expressionOf(input),
        ignoreCase: input.ignore_case ?? false,
        glob: input.glob,
        matchesMax: input.limit ?? searchMatchesMax,
      };
      const end = await runWorker<SearchMessage>(deps, {
        module: workerModule,
        input: workerInput,
        timeoutMs: searchTimeoutMs,
        terminateMs,
        signal: context.signal,
        onMessage: (message) => found.take(message),
      });
      return answerOf(end, found, { timeoutMs: searchTimeoutMs, signal: context.signal });
    },
  });
}

/** The pattern as a regular expression's source; one that is none is told before anything runs. */
function expressionOf({ pattern, literal }: SearchFilesInput): string {
  if (literal === true) return pattern.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  try {
    return new RegExp(pattern).source;
  } catch (error) {
    const reason = messageOf(error);
    throw toolError("SEARCH_FAILED", `${reason}. Set literal to search for plain text.`, error);
  }
}

/** What the worker has told so far: it stands also when the worker is stopped. */
class FoundMatches {
  readonly matches: SearchMatch[] = [];
  lastPath: string | undefined;
  end: { readonly counts: SearchCounts; readonly limited: boolean } | undefined;
  readonly #onMove: () => void;

  constructor(onMove: () => void) {
    this.#onMove = onMove;
  }

  take(message: SearchMessage): boolean {
    this.#onMove();
    switch (message.kind) {
      case "file":
        this.lastPath = message.path;
        return false;
      case "matches":
        this.matches.push(...message.matches);
        return false;
      case "end":
        this.end = message;
        return true;
    }
  }
}

function answerOf(
  end: WorkerEnd,
  found: FoundMatches,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): string {
  if (end.kind === "failed") {
    const reason = end.error instanceof Error ? end.error.message : String(end.error);
    throw toolError("SEARCH_FAILED", `The search broke off: ${reason}.`, end.error);
  }
  if (end.kind === "finished") return listed(found, endNotes(found));
  const { steps } = end;
  if (end.by === "interrupt") {
    throw toolError("CALL_INTERRUPTED", "The search was stopped with the turn.", signal.reason, { receipt: { steps } });
  }
  const where = found.lastPath === undefined ? "" : ` It was in ${quoted(found.lastPath)}.`;
  const message = `The search did not end within ${timeoutMs / 1_000} s.${where}`;
  if (found.matches.length > 0) return listed(found, [`[${message} These are the matches until then]`]);
  const advice = " Use a simpler pattern, literal, or a smaller path.";
  throw toolError("SEARCH_FAILED", `${message}${advice}`, undefined, { receipt: { steps } });
}

function endNotes({ end, matches }: FoundMatches): readonly string[] {
  if (end === undefined) return [];
  const { searchedCount, skippedCount } = end.counts;
  const files = `${searchedCount} ${searchedCount === 1 ? "file" : "files"}`;
  return [
    ...(matches.length === 0 ? [`No line fits, in ${files}.`] : []),
    ...(end.limited ? [`[the first ${matches.length} lines that fit; narrow the pattern, the path or the glob]`] : []),
    ...(skippedCount > 0 ? [`[not searched: ${skippedCount} that are binary, too large or not readable]`] : []),
  ];
}

function listed({ matches }: FoundMatches, notes: readonly string[]): string {
  const lines: string[] = [];
  let characterCount = 0;
  for (const match of matches) {
    // A name with a line end in it would read as a line of its own.
    const line = `${match.path.replaceAll(/\p{Cc}/gu, "?")}:${match.line}: ${match.text}`;
    characterCount += line.length + 1;
    if (characterCount > answerCharactersMax) {
      lines.push(`[... ${matches.length - lines.length} more lines that fit]`);
      break;
    }
    lines.push(line);
  }
  return [...lines, ...notes].join("\n");
}
