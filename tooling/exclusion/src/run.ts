import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { SessionStore } from "@turnkeeper/state-store";
import { sessionId } from "./bounds.ts";
import type { Mode } from "./bounds.ts";
import { violationsOf } from "./checks.ts";
import { Crew } from "./crew.ts";
import { Faults } from "./faults.ts";
import type { FaultMix } from "./faults.ts";
import { openGround } from "./ground.ts";
import type { Ground, GroundName } from "./ground.ts";
import { readEvents } from "./history.ts";
import { reachOf, shortfalls } from "./reach.ts";
import type { Floors, Reach } from "./reach.ts";
import { RecordIndex } from "./record-index.ts";

export interface RunOptions {
  readonly seed: number;
  readonly processCount: number;
  /** How long the crew is under faults, at least. */
  readonly durationMs: number;
  /** How much longer it may take to reach the floors, or to find what is sought, on a machine with other work. */
  readonly patienceMs: number;
  readonly floors: Floors;
  /** Ends the faults once a violation of this rule has been found: for the control runs. */
  readonly soughtRule?: string;
  readonly mix?: FaultMix;
  readonly mode: Mode;
  /** What the processes share. Default: a file. */
  readonly ground?: GroundName;
  /** Leaves store and histories where they are, and says where. */
  readonly isKept?: boolean;
  /** Ends the run early; everything it started ends. */
  readonly signal?: AbortSignal;
}

export interface RunReport {
  readonly violations: readonly string[];
  readonly reach: Reach;
  /** Inputs that died with their process before anybody else could run them. */
  readonly pendingCount: number;
  readonly faultMs: number;
  readonly folder: string;
}

/** Stops enough to meet expiry, kills as fast as processes can be replaced, and time to get anywhere. */
const usualMix: FaultMix = { kill: 0.2, shortStop: 0.1, longStop: 0.2 };
/** What a process may take to run what is left, once nobody is hit any more. */
const restMs = 60_000;
/** How often the floors are looked at. */
const lookMs = 500;

class Run {
  readonly #options: RunOptions;
  readonly #folder: string;
  readonly #ground: Ground;
  readonly #crew: Crew;

  constructor(options: RunOptions, folder: string, ground: Ground) {
    this.#options = options;
    this.#folder = folder;
    this.#ground = ground;
    this.#crew = new Crew(folder, options.mode, ground);
  }

  #index(): RecordIndex {
    return new RecordIndex({ events: readEvents(join(this.#folder, "history")), signals: this.#crew.signals });
  }

  async run(): Promise<RunReport> {
    await mkdir(join(this.#folder, "history"));
    const { store } = this.#ground;
    try {
      const { seed, processCount, mix = usualMix } = this.#options;
      const faults = new Faults(this.#crew, store.leases, virtualHost({ seed }).random, { processCount, mix });
      const faultMs = await this.#underFaults(faults, store.sessions);
      const restViolations = await this.#rest();
      const records = await store.sessions.records(sessionId);
      if (!records) throw new Error("No process has ever reached the store.");
      const index = this.#index();
      const reach = reachOf(index, this.#ground.reach);
      return {
        violations: [...restViolations, ...violationsOf(index, records), ...shortfalls(reach, this.#options.floors)],
        reach,
        pendingCount: records.inputs.filter((input) => input.state === "pending").length,
        faultMs,
        folder: this.#folder,
      };
    } finally {
      await this.#crew.close();
    }
  }

  async #underFaults(faults: Faults, sessions: Pick<SessionStore, "records">): Promise<number> {
    const { processCount, durationMs, patienceMs, signal } = this.#options;
    for (let count = 0; count < processCount; count++) this.#crew.start();
    while (this.#crew.living.length > 0 && !this.#crew.living.every((member) => member.isReady)) {
      signal?.throwIfAborted();
      await pause(10);
    }
    const sinceMs = performance.now();
    const elapsedMs = (): number => performance.now() - sinceMs;
    let lookAtMs = durationMs;
    for (; ; await faults.act()) {
      signal?.throwIfAborted();
      await this.#ground.act();
      if (elapsedMs() < lookAtMs) continue;
      if (elapsedMs() >= durationMs + patienceMs || (await this.#isEnough(sessions))) break;
      lookAtMs = elapsedMs() + lookMs;
    }
    this.#ground.rest();
    return elapsedMs();
  }

  async #isEnough(sessions: Pick<SessionStore, "records">): Promise<boolean> {
    const { floors, soughtRule } = this.#options;
    const index = this.#index();
    if (shortfalls(reachOf(index, this.#ground.reach), floors).length > 0) return false;
    if (soughtRule === undefined) return true;
    // Read after the history: whatever was acknowledged is in it.
    const records = await sessions.records(sessionId);
    return records !== undefined && violationsOf(index, records).some((one) => one.startsWith(`${soughtRule}:`));
  }

  /** Lets everybody finish, then one more process, which settles what the dead left; answers who did not manage. */
  async #rest(): Promise<readonly string[]> {
    if (await this.#crew.settle(restMs)) {
      this.#crew.start();
      await this.#crew.settle(restMs);
    }
    return this.#crew.members.flatMap(({ misbehaviour }) => (misbehaviour ? [`TURN-1: ${misbehaviour}`] : []));
  }
}

/**
 * Lets real processes compete for one session of one store while they are killed, stopped and continued, and
 * checks what they recorded against what the store has. Ends every process it started and, unless they are to be kept,
 * removes every file.
 */
export async function runExclusion(options: RunOptions): Promise<RunReport> {
  const folder = await mkdtemp(join(tmpdir(), "exclusion-"));
  let ground: Ground | undefined;
  try {
    ground = await openGround(options.ground ?? "file", folder, virtualHost({ seed: options.seed + 1 }).random);
    return await new Run(options, folder, ground).run();
  } finally {
    await ground?.close();
    if (!options.isKept) await rm(folder, { recursive: true });
  }
}
