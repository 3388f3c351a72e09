/**
 * How the processes of a turn are found again: every one of them inherits a variable that names its turn, so that
 * whoever is granted after a turn that did not end itself can end what it left running on this host.
 */
export type ProcessMarker = Readonly<Record<string, string>>;

/** Ends every process of this host that carries the marker; `killMarkedProcesses` of the tools package does it. */
export type EndProcesses = (marker: ProcessMarker) => Promise<unknown>;

export function processMarkerOf(turnId: string): ProcessMarker {
  return { TURNKEEPER_TURN: turnId };
}
