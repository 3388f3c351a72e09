/**
 * Ends processes that may not want to end: TERM, a grace, KILL, and again for what was forked meanwhile.
 *
 * | step | acts | leaves when |
 * | --- | --- | --- |
 * | ask | TERM to the process group and to every process found outside it | nothing is found, the grace is over, or a hard stop comes |
 * | force | KILL to the same, rescanned each round | nothing is found, or the rounds are used up |
 *
 * What is left after that (a process in uninterruptible sleep, one of another user) is named in the receipt: the
 * caller detaches from it.
 */

import type { Host } from "@turnkeeper/kernel";
import { findProcess, processTableSupported, scanProcesses } from "./process-table.ts";
import type { ProcessTarget } from "./process-table.ts";

/** What a kill did. `supported: false`: this platform has no `/proc`, so nothing was looked for by marker. */
export type KillReceipt =
  | { readonly supported: false }
  | {
      readonly supported: true;
      /** Processes that were found and signalled. */
      readonly foundCount: number;
      /** Those of them that TERM did not end. */
      readonly killedCount: number;
      /** Process ids that KILL did not end either. */
      readonly survivors: readonly number[];
    };

export interface KillOptions {
  /** Between TERM and KILL, in milliseconds; 0 sends KILL at once. */
  readonly graceMs: number;
  /** Cuts the grace short. */
  readonly hardSignal?: AbortSignal;
}

// Most processes are gone within the first poll; one that cleans up is not worth a scan every few milliseconds.
const firstPollMs = 5;
const longestPollMs = 200;

// A fork that races a scan is found by the next; one that wins ten times in a row is a fork bomb outside its group.
const forceRoundsMax = 10;

export async function endProcesses(
  { host }: { readonly host: Host },
  target: ProcessTarget,
  options: KillOptions,
): Promise<KillReceipt> {
  if (!processTableSupported()) {
    if (target.groupId !== undefined) await endGroup(host, target.groupId, options);
    return { supported: false };
  }
  const signalled = new Map<number, NodeJS.Signals>();
  const stubborn = new Set<number>();
  const alive = (): number[] => [...signalled.keys()].filter((processId) => findProcess(target, processId));
  /** Signals whoever did not get this signal yet; answers whether it found anybody. */
  const sweep = async (signal: NodeJS.Signals): Promise<boolean> => {
    let foundCount = 0;
    let groupSignalled = false;
    await scanProcesses({ host }, target, ({ processId, inGroup }) => {
      foundCount += 1;
      if (signalled.get(processId) === signal) return;
      signalled.set(processId, signal);
      if (signal === "SIGKILL") stubborn.add(processId);
      // The group gets it in one step, so that nobody forks between two signals, and once: many programs take a second
      // TERM for impatience. A member just seen proves that the number still means this group.
      if (!inGroup) kill(processId, signal);
      else if (!groupSignalled) groupSignalled = kill(-Number(target.groupId), signal);
    });
    return foundCount > 0;
  };

  if (await leftAfterGrace(host, options, async () => alive().length > 0 || (await sweep("SIGTERM")))) {
    for (const processId of alive()) stubborn.add(processId);
    for (let round = 0; round < forceRoundsMax && (await sweep("SIGKILL")); round++) await pause(host, pollMs(round));
  }
  return { supported: true, foundCount: signalled.size, killedCount: stubborn.size, survivors: alive() };
}

/** Polls `anyLeft` until it says no (false), or the grace is over or the hard signal aborts (true). */
async function leftAfterGrace(
  host: Host,
  { graceMs, hardSignal }: KillOptions,
  anyLeft: () => Promise<boolean>,
): Promise<boolean> {
  const endMs = host.clock.monotonicMs() + graceMs;
  for (let round = 0; ; round++) {
    const restMs = endMs - host.clock.monotonicMs();
    if (restMs <= 0 || hardSignal?.aborted === true) return true;
    if (!(await anyLeft())) return false;
    await pause(host, Math.min(pollMs(round), restMs), hardSignal);
  }
}

/** Without a process table: the group is all that can be reached. */
async function endGroup(host: Host, groupId: number, options: KillOptions): Promise<void> {
  let signal: NodeJS.Signals | 0 = "SIGTERM";
  const anyLeft = (): Promise<boolean> => {
    const found = kill(-groupId, signal);
    signal = 0;
    return Promise.resolve(found);
  };
  if (await leftAfterGrace(host, options, anyLeft)) kill(-groupId, "SIGKILL");
}

/** Whether the signal found somebody; a process or group that ended meanwhile, or is not ours, is no failure. */
function kill(processId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(processId, signal);
  } catch {
    return false;
  }
}

function pollMs(round: number): number {
  return Math.min(firstPollMs * 2 ** round, longestPollMs);
}

function pause(host: Host, ms: number, wake?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      wake?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = host.timers.after(ms, done);
    wake?.addEventListener("abort", done);
  });
}
