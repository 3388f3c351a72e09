// The tools.
export { builtinTools } from "./builtin-tools.ts";
export type { BuiltinToolsDeps, BuiltinToolsOptions } from "./builtin-tools.ts";
export { createShellTool } from "./shell-tool.ts";
export type { ShellInput, ShellToolDeps, ShellToolOptions } from "./shell-tool.ts";
export { createDelegateTool } from "./delegate-tool.ts";
export type { DelegateInput } from "./delegate-tool.ts";
export { createEditFileTool } from "./edit-file-tool.ts";
export type { EditFileInput } from "./edit-file-tool.ts";
export { createFetchUrlTool } from "./fetch-url-tool.ts";
export type { FetchUrlDeps, FetchUrlInput, FetchUrlOptions } from "./fetch-url-tool.ts";
export type { ResolveName } from "./address-gate.ts";
export { createListFilesTool } from "./list-files-tool.ts";
export type { ListFilesInput } from "./list-files-tool.ts";
export { createReadFileTool } from "./read-file-tool.ts";
export type { ReadFileInput } from "./read-file-tool.ts";
export { createSearchFilesTool } from "./search-files-tool.ts";
export type { SearchFilesInput } from "./search-files-tool.ts";
export { createWriteFileTool } from "./write-file-tool.ts";
export type { WriteFileInput } from "./write-file-tool.ts";
export type { TextTool } from "./text-tool.ts";
export { createSeenFiles } from "./seen-files.ts";
export type { SeenFiles } from "./seen-files.ts";
export type { FileToolDeps } from "./file-tool-deps.ts";
export type { FileToolsOptions } from "./file-tools-options.ts";
export type { Environment } from "./child-environment.ts";

// Ending what a turn left behind.
export { killMarkedProcesses } from "./marked-processes.ts";
export type { KillMarkedOptions } from "./marked-processes.ts";
export type { KillReceipt } from "./kill-ladder.ts";
export type { StopStep } from "./stop-receipt.ts";

// Which calls run, are asked for, or are refused.
export { approvalPolicy } from "./approval-policy.ts";
export type { ApprovalCall, ApprovalPolicy, ApprovalVerdict } from "./approval-policy.ts";
export type { ApprovalDecision, ApprovalRules, ToolApprovalRule } from "./approval-rules.ts";

// What they throw.
export type { ToolErrorCode } from "./errors.ts";
