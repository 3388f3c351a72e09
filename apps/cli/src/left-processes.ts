import type { EndProcesses } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";

/** Ends what a turn that did not end itself left running on this host. The tools are loaded when there is such a turn. */
export const endLeftProcesses: EndProcesses = async (marker) => {
  const { killMarkedProcesses } = await import("@turnkeeper/tools");
  return killMarkedProcesses({ host: systemHost }, marker);
};
