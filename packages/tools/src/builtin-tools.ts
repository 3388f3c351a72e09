import type { AnyTool } from "@turnkeeper/agent-core";
import { z } from "zod";
import type { FileToolsOptions } from "./file-tools-options.ts";
import { createListFilesTool } from "./list-files-tool.ts";
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
}

// Each tool checks its own part.
const optionsSchema = z.strictObject({ shell: z.looseObject({}).optional(), files: z.looseObject({}).optional() });

/** All tools of this package, in the order `shell`, `read_file`, `write_file`, `edit_file`, `list_files`, `search_files`. */
export function builtinTools(deps: ShellToolDeps, options?: BuiltinToolsOptions): readonly AnyTool[] {
  resolveOptions("builtinTools", optionsSchema, options);
  const { shell, files } = options ?? {};
  const fileDeps = { host: deps.host, seen: createSeenFiles() };
  return [
    createShellTool(deps, shell),
    createReadFileTool(fileDeps, files),
    createWriteFileTool(fileDeps, files),
    createEditFileTool(fileDeps, files),
    createListFilesTool(files),
    createSearchFilesTool(fileDeps, files),
  ];
}
