import { existsSync, readFileSync } from "node:fs";

/** Whether anything of a process runs: a zombie has ended, though nobody may have taken note; only `/proc` tells. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !existsSync("/proc/self") || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    // It is gone, or went between the two looks.
    return false;
  }
}
