import { CodedError } from "@turnkeeper/kernel";

/**
 * Says as a process warning what was thrown where nobody waits for it and the work is tried again. An error with a code
 * is none: a store that fails speaks up where it is met again.
 */
export function reportDefect(error: unknown): void {
  if (!CodedError.is(error)) process.emitWarning(error instanceof Error ? error : String(error));
}
