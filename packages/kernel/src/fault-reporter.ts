function warn(fault: Error): void {
  process.emitWarning(fault.message, { type: "TurnkeeperWarning" });
}

/**
 * Makes of `onFault` a reporter that cannot throw, for faults that must neither end the work they are met in nor be
 * silent: what `onFault` does not take becomes a process warning, and so does everything where there is none.
 */
export function faultReporter<Fault extends Error>(onFault: (fault: Fault) => void = warn): (fault: Fault) => void {
  return (fault) => {
    try {
      onFault(fault);
    } catch {
      warn(fault);
    }
  };
}
