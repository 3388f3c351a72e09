import { CodedError } from "@turnkeeper/kernel";
import { oneLine } from "./one-line.ts";

/** What the CLI itself throws; every other code comes from a package. */
export type CliErrorCode =
  /** The command line, the message or a configured value cannot be used. Exit 2. */
  | "USAGE"
  /** The home folder cannot be made or used. Exit 74. */
  | "HOME_UNUSABLE"
  /** The store that was named is not there, or its file is not and other files of it are. Exit 74. */
  | "STORE_MISSING"
  /** A process uses the store that must be left alone meanwhile. Exit 75. */
  | "STORE_HELD"
  /** What was asked for is not there. Exit 1. */
  | "NOT_FOUND"
  /** What was asked for cannot be done right now. Exit 1. */
  | "REFUSED";

/** An error whose message is the one line that the user reads. */
export function cliError(
  code: CliErrorCode,
  message: string,
  cause?: unknown,
  context: Readonly<Record<string, unknown>> = {},
): CodedError<CliErrorCode> {
  return new CodedError(code, message, cause === undefined ? { context } : { context, cause });
}

/** The one line that stderr gets for an error: its message for a mistake, a pointer to `--debug` for a defect. */
export function failureLine(error: unknown): string {
  if (CodedError.is(error)) return oneLine(error.message);
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return `internal error: ${oneLine(message)} (run again with --debug for the details, and please report it)`;
}

/** The system's name of what went wrong (`ENOENT`), where the system said it. */
export function systemCodeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
