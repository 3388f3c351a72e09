/** Reads Linux's process table: which processes belong to a command's session or carry a marker in their environment. */

import { readFileSync, readlinkSync } from "node:fs";
import { readdir } from "node:fs/promises";
import type { ProcessMarker } from "@turnkeeper/agent-core";
import type { Host } from "@turnkeeper/kernel";

export interface ProcessTarget {
  readonly marker: ProcessMarker;
  /** The process group and session that a command was started in (`detached`): both have its leader's process id. */
  readonly groupId?: number;
}

export interface FoundProcess {
  readonly processId: number;
  /** Whether one signal to the group reaches it: a job of an interactive shell, or a daemon, left the group. */
  readonly inGroup: boolean;
}

// A scan reads two files a process, about 30 microseconds: this many and the event loop gets its turn.
const processesPerSlice = 64;

/** Whether `/proc` is there and shows the process ids that `kill` takes (it need not inside a container). */
export function processTableSupported(): boolean {
  try {
    return readlinkSync("/proc/self") === String(process.pid);
  } catch {
    return false;
  }
}

/** Looks at one process now, without an await: what is found may be signalled in the same step. */
export function findProcess(target: ProcessTarget, processId: number): FoundProcess | undefined {
  if (processId === process.pid) return undefined;
  try {
    const stat = readFileSync(`/proc/${processId}/stat`, "latin1");
    // The command name stands in brackets and may itself hold brackets and spaces: count from the last one.
    const [state, , group, session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === "Z" || state === "X") return undefined;
    const inSession = target.groupId !== undefined && session === String(target.groupId);
    if (!inSession && !carries(target.marker, processId)) return undefined;
    return { processId, inGroup: inSession && group === session };
  } catch {
    // It ended in the meantime, or belongs to another user: not ours to end either way.
    return undefined;
  }
}

/** Calls `onFound` for each process of the target, in the same step in which it was found. */
export async function scanProcesses(
  { host }: { readonly host: Host },
  target: ProcessTarget,
  onFound: (found: FoundProcess) => void,
): Promise<void> {
  const processIds = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const [index, name] of processIds.entries()) {
    if (index > 0 && index % processesPerSlice === 0) {
      await new Promise<void>((resolve) => void host.timers.afterPoll(resolve));
    }
    const found = findProcess(target, Number(name));
    if (found) onFound(found);
  }
}

function carries(marker: ProcessMarker, processId: number): boolean {
  const environment = `\0${readFileSync(`/proc/${processId}/environ`, "utf8")}\0`;
  return Object.entries(marker).every(([name, value]) => environment.includes(`\0${name}=${value}\0`));
}
