import type { CodedError } from "@turnkeeper/kernel";
import type { TurnLivenessErrorCode } from "./errors.ts";

/** Takes what went wrong beside the watch: it never ends the watch, and is never silent. */
export type FaultReporter = (fault: CodedError<TurnLivenessErrorCode>) => void;

function warn(fault: Error): void {
  process.emitWarning(fault.message, { type: "TurnkeeperWarning" });
}

/** A reporter that cannot throw: what `onFault` does not take becomes a process warning. */
export function faultReporter(onFault: FaultReporter = warn): FaultReporter {
  return (fault) => {
    try {
      onFault(fault);
    } catch {
      warn(fault);
    }
  };
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
