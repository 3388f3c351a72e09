import { CodedError } from "@turnkeeper/kernel";
import type { ErrorContext } from "@turnkeeper/kernel";

/** What the tools of this package throw; the message is for the model, the code for whoever counts or reacts. */
export type ToolErrorCode =
  /** An option of a tool is misspelt, of the wrong type or out of range. */
  | "OPTION_INVALID"
  /** A path that leaves the workspace or belongs to the store. */
  | "PATH_REFUSED"
  /** A file that is missing, of the wrong kind, not readable, not writable, or not text. */
  | "FILE_UNUSABLE"
  /** An edit whose text is not there, stands there more than once, or changes nothing. */
  | "EDIT_REFUSED"
  /** A file that is not the one that this session has read: somebody else wrote it. */
  | "FILE_CHANGED"
  /** A search whose pattern is no regular expression, that did not end in time, or that broke. */
  | "SEARCH_FAILED"
  /** An address that is not fetched: not of the web, with credentials, or not on the public Internet. */
  | "ADDRESS_REFUSED"
  /** A page that could not be fetched, or is no text; the message says which. */
  | "FETCH_FAILED"
  /** An MCP server that does not run: nothing was sent to it. */
  | "MCP_UNAVAILABLE"
  /** An MCP server that did not answer in time, broke off, or answered that the call failed. */
  | "MCP_FAILED"
  /** The shell could not be started: nothing ran. */
  | "COMMAND_NOT_STARTED"
  /** The command ran longer than it may; its processes were ended. */
  | "COMMAND_TIMED_OUT"
  /** Nobody is there to run a subagent: the call's turn is run by no agent. */
  | "NO_SUBAGENTS"
  /** The turn was stopped while the call ran. */
  | "CALL_INTERRUPTED";

/** Makes a coded error of this package. */
export function toolError(
  code: ToolErrorCode,
  message: string,
  cause?: unknown,
  context: ErrorContext = {},
): CodedError<ToolErrorCode> {
  return new CodedError(code, message, { context, ...(cause === undefined ? {} : { cause }) });
}

/** Throws `CALL_INTERRUPTED` once the turn's signal has aborted; `attempt` says what then did not happen. */
export function throwIfInterrupted(signal: AbortSignal, attempt: string): void {
  if (!signal.aborted) return;
  throw toolError("CALL_INTERRUPTED", `The turn was stopped before it could ${attempt}.`, signal.reason);
}
