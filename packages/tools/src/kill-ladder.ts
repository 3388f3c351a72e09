/**
 * Ends processes that may not want to end: TERM, a grace, KILL, and again for what was forked meanwhile.
 *
 * | step | acts | leaves when |
 * | --- | --- | --- |
 * | term | TERM to the process group and to every process found outside it | nothing is found, the grace is over, or a hard stop comes |
 * | kill | KILL to the same, rescanned each round | nothing is found, or the rounds are used up |
 * | detach | nothing | at once |
 *
 * Detached is what is left after that (a process in uninterruptible sleep, one of another user): the receipt names it,
 * and the caller lets go of it.
 */

import type { Host } from "@turnkeeper/kernel";
import { findProcess, processTableSupported, scanProcesses } from "./process-table.ts";
import type { ProcessTarget } from "./process-table.ts";
import type { StopStep } from "./stop-receipt.ts";

/** What a kill did. `supported: false`: this platform has no `/proc`, so nothing was looked for by marker. */
export type KillReceipt =
  | { readonly supported: false; readonly steps: readonly StopStep[] }
  | {
      readonly supported: true;
      /** Processes that were found and signalled. */
      readonly foundCount: number;
      /** Those of them that TERM did not end. */
      readonly killedCount: number;
      /** Process ids that KILL did not end either. */
      readonly survivors: readonly number[];
      /** What each step did, in order; none where nothing was found. */
      readonly steps: readonly StopStep[];
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
    return {
      supported: false,
      steps: target.groupId === undefined ? [] : await endGroup(host, target.groupId, options),
    };
  }
  const found = new FoundProcesses(target);
  const steps: StopStep[] = [];
  const anyLeft = async (): Promise<boolean> => found.alive().length > 0 || (await found.sweep(host, "SIGTERM"));
  const left = await leftAfterGrace(host, options, anyLeft);
  const stubborn = found.alive();
  if (found.count > 0) steps.push({ step: "term", ...found.reached("SIGTERM"), leftCount: stubborn.length });
  if (left) {
    for (let round = 0; round < forceRoundsMax && (await found.sweep(host, "SIGKILL")); round++) {
      await pause(host, pollMs(round));
    }
    found.countStubborn(stubborn);
    const reached = found.reached("SIGKILL");
    if (reached.groupCount + reached.sweptCount > 0) {
      steps.push({ step: "kill", ...reached, leftCount: found.alive().length });
    }
  }
  const survivors = found.alive();
  if (survivors.length > 0) steps.push({ step: "detach", processIds: survivors });
  return { supported: true, foundCount: found.count, killedCount: found.stubbornCount, survivors, steps };
}

type EndSignal = "SIGTERM" | "SIGKILL";

/** The processes of one target that were found so far, and which signals each of them got. */
class FoundProcesses {
  readonly #target: ProcessTarget;
  /** The last signal of each. */
  readonly #signalled = new Map<number, EndSignal>();
  readonly #stubborn = new Set<number>();
  readonly #counts = {
    SIGTERM: { groupCount: 0, sweptCount: 0 },
    SIGKILL: { groupCount: 0, sweptCount: 0 },
  };

  constructor(target: ProcessTarget) {
    this.#target = target;
  }

  get count(): number {
    return this.#signalled.size;
  }

  get stubbornCount(): number {
    return this.#stubborn.size;
  }

  alive(): number[] {
    return [...this.#signalled.keys()].filter((processId) => findProcess(this.#target, processId));
  }

  /** How many processes got the signal. */
  reached(signal: EndSignal): { readonly groupCount: number; readonly sweptCount: number } {
    return this.#counts[signal];
  }

  countStubborn(processIds: readonly number[]): void {
    for (const processId of processIds) this.#stubborn.add(processId);
  }

  /** Signals whoever did not get this signal yet; answers whether it found anybody. */
  async sweep(host: Host, signal: EndSignal): Promise<boolean> {
    let foundCount = 0;
    let groupSignalled = false;
    await scanProcesses({ host }, this.#target, ({ processId, inGroup }) => {
      foundCount += 1;
      if (this.#signalled.get(processId) === signal) return;
      this.#signalled.set(processId, signal);
      if (signal === "SIGKILL") this.#stubborn.add(processId);
      this.#counts[signal][inGroup ? "groupCount" : "sweptCount"] += 1;
      // The group gets it in one step, so that nobody forks between two signals, and once: many programs take a second
      // TERM for impatience. A member just seen proves that the number still means this group.
      if (!inGroup) kill(processId, signal);
      else if (!groupSignalled) groupSignalled = kill(-Number(this.#target.groupId), signal);
    });
    return foundCount > 0;
  }
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

/** Without a process table: the group is all that can be reached, and its members cannot be counted. */
async function endGroup(host: Host, groupId: number, options: KillOptions): Promise<readonly StopStep[]> {
  const steps: StopStep[] = [];
  let asked: boolean | undefined;
  const anyLeft = (): Promise<boolean> => {
    const found = kill(-groupId, asked === undefined ? "SIGTERM" : 0);
    asked ??= found;
    return Promise.resolve(found);
  };
  const left = await leftAfterGrace(host, options, anyLeft);
  // A hard stop, or a grace of nothing, goes straight to KILL.
  if (asked === true) steps.push({ step: "term", groupCount: 1, sweptCount: 0, leftCount: left ? 1 : 0 });
  if (left && kill(-groupId, "SIGKILL")) steps.push({ step: "kill", groupCount: 1, sweptCount: 0, leftCount: 0 });
  return steps;
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
