/** Which processes have a file open, as the kernel tells. Looks with `stat` alone, which opens nothing. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import type { BigIntStats } from "node:fs";

export interface OpenProcess {
  readonly pid: number;
  /** What it is, where its command line tells. */
  readonly name: string;
}

function statOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true });
  } catch {
    // It went away, or is somebody else's.
    return undefined;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function nameOf(pid: number): string {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return words.includes("gateway") ? `the gateway (pid ${pid})` : `pid ${pid}`;
  } catch {
    return `pid ${pid}`;
  }
}

/** A device as /proc/locks writes it. */
function deviceOf(dev: bigint): string {
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn);
  return `${major.toString(16).padStart(2, "0")}:${minor.toString(16).padStart(2, "0")}`;
}

function lockers(files: readonly BigIntStats[]): number[] {
  const wanted = new Set(files.map(({ dev, ino }) => `${deviceOf(dev)}:${ino}`));
  try {
    return readFileSync("/proc/locks", "utf8")
      .split("\n")
      .flatMap((line) => {
        const fields = line.trim().split(/\s+/);
        const at = fields.findIndex((field) => wanted.has(field));
        return at > 0 ? [Number(fields[at - 1])] : [];
      });
  } catch {
    return [];
  }
}

function hasOpen(pid: string, files: readonly BigIntStats[]): boolean {
  return namesIn(`/proc/${pid}/fd`).some((name) => {
    const stats = statOf(`/proc/${pid}/fd/${name}`);
    return stats !== undefined && files.some(({ dev, ino }) => dev === stats.dev && ino === stats.ino);
  });
}

/**
 * Every process that has one of the files open or locked, but this one. Absent where the platform has no `/proc`;
 * processes of another pid namespace are not seen.
 */
export function processesWith(paths: readonly string[]): OpenProcess[] | undefined {
  if (!statOf("/proc/self/fd")) return undefined;
  const files = paths.flatMap((path) => statOf(path) ?? []);
  if (files.length === 0) return [];
  const holders = namesIn("/proc").filter((name) => /^\d+$/.test(name) && hasOpen(name, files));
  const pids = new Set([...holders.map(Number), ...lockers(files)]);
  pids.delete(process.pid);
  return [...pids].filter((pid) => pid > 0).map((pid) => ({ pid, name: nameOf(pid) }));
}
