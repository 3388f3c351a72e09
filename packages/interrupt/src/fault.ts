import type { CodedError } from "@turnkeeper/kernel";
import type { InterruptErrorCode } from "./errors.ts";

/** Takes what went wrong beside a stop: it never keeps the stop from happening, and is never silent. */
export type FaultReporter = (fault: CodedError<InterruptErrorCode>) => void;

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
