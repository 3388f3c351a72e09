import type { AnyTool } from "@turnkeeper/agent-core";
import { z } from "zod";
import type { FileToolsOptions } from "./file-tools-options.ts";
import { createFetchUrlTool } from "./fetch-url-tool.ts";
import type { FetchUrlDeps, FetchUrlOptions } from "./fetch-url-tool.ts";
import { createListFilesTool } from "./list-files-tool.ts";
import { createDelegateTool } from "./delegate-tool.ts";
import { createEditFileTool } from "./edit-file-tool.ts";
import { resolveOptions } from "./options.ts";
import { createReadFileTool } from "./read-file-tool.ts";
import { createSeenFiles } from "./seen-files.ts";
import { createSearchFilesTool } from "./search-files-tool.ts";
import { createShellTool } from "./shell-tool.ts";
import type { ShellToolDeps, ShellToolOptions } from "./shell-tool.ts";
import { createWriteFileTool } from "./write-file-tool.ts";

export interface BuiltinToolsOptions {
  readonly shell?: ShellToolOptions;
  readonly files?: FileToolsOptions;
  readonly fetchUrl?: FetchUrlOptions;
}

export interface BuiltinToolsDeps extends ShellToolDeps, FetchUrlDeps {}

// Each tool checks its own part.
const optionsSchema = z.strictObject({
  shell: z.looseObject({}).optional(),
  files: z.looseObject({}).optional(),
  fetchUrl: z.looseObject({}).optional(),
});

/** All tools of this package, each with its part of the options; the file tools share what a session has seen. */
export function builtinTools(deps: BuiltinToolsDeps, options?: BuiltinToolsOptions): readonly AnyTool[] {
  resolveOptions("builtinTools", optionsSchema, options);
  const { shell, files, fetchUrl } = options ?? {};
  const fileDeps = { host: deps.host, seen: createSeenFiles() };
  return [
    createShellTool(deps, shell),
    createReadFileTool(fileDeps, files),
    createWriteFileTool(fileDeps, files),
    createEditFileTool(fileDeps, files),
    createListFilesTool(files),
    createSearchFilesTool(fileDeps, files),
    createFetchUrlTool(deps, fetchUrl),
    createDelegateTool(),
  ];
}
