/** What the kernel tells of a process, read from `/proc`. Elsewhere than on Linux nothing is known, and nothing concluded. */
import { readFileSync, readlinkSync } from "node:fs";
import type { ProcessIdentity } from "@turnkeeper/state-store";

interface ProcessStat {
  /** One letter; Z and X are a process that has ended. */
  readonly state: string;
  /** Clock ticks from boot to the start of the process: with the pid, a name that is not used twice in one boot. */
  readonly start: string;
}

function readStat(pid: number | "self"): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in brackets, which may itself hold spaces and brackets.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const state = fields[0];
    const start = fields[19];
    return state === undefined || start === undefined ? undefined : { state, start };
  } catch {
    return undefined;
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** Start time and pid namespace of this process, where the platform tells. */
export function ownProcessFacts(): Pick<ProcessIdentity, "pidStart" | "pidNamespace"> {
  const pidStart = readStat("self")?.start;
  const pidNamespace = readLink("/proc/self/ns/pid");
  return { ...(pidStart === undefined ? {} : { pidStart }), ...(pidNamespace === undefined ? {} : { pidNamespace }) };
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists and is not ours.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}

/**
 * Whether the process that `target` names has provably ended, judged on pid and start time. Only where its pid means
 * the same here: in the same pid namespace, looked at through a `/proc` of that namespace. The caller has compared boots.
 */
export function hasProvablyEnded(target: ProcessIdentity): boolean {
  if (!Number.isSafeInteger(target.pid) || target.pid <= 0) return false;
  if (target.pidNamespace === undefined || target.pidNamespace !== readLink("/proc/self/ns/pid")) return false;
  // A container may see the /proc of its host: then /proc/PID is another process altogether.
  if (readLink("/proc/self") !== String(process.pid)) return false;
  if (!exists(target.pid)) return true;
  const stat = readStat(target.pid);
  if (stat === undefined || target.pidStart === undefined) return false;
  return stat.start !== target.pidStart || stat.state === "Z" || stat.state === "X";
}
