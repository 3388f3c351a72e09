import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import { auditStore } from "../audit.ts";
import type { Finding } from "../audit.ts";
import { Expectation } from "../expectation.ts";
import { isReport, StoreProcess } from "../store-process.ts";
import type { WorkerBundle } from "../worker-bundle.ts";
import { sessionIdsOf } from "../workload.ts";
import type { Workload } from "../workload.ts";

export interface KillOptions {
  /** How many processes are killed. */
  readonly rounds: number;
  readonly processCount: number;
  readonly sessionCount: number;
  /** How many turns a process runs at the same time: their appends share transactions. */
  readonly laneCount: number;
  readonly seed: number;
  readonly mode: "honest" | "early";
}

export interface KillReport {
  readonly findings: readonly Finding[];
  readonly kills: number;
  /** How often nobody was left, so that the next to open had to recover the WAL; each time everything was audited. */
  readonly audits: number;
  readonly appends: number;
  /** Steps that were kept in the spool. */
  readonly kept: number;
  readonly acknowledgements: number;
  /** Turns that were under way when their process was killed. */
  readonly cutTurns: number;
}

/** So many are killed one by one, while the others go on, before all are killed at once and the store is audited. */
const killsPerAudit = 8;
/** A store is worked on so often, then the next is begun: an audit reads all of it. */
const auditsPerStore = 4;
/** How long a process works before it is hit. */
const lifeMsMax = 60;

/** Grants that were neither ended nor released. */
function cutTurnCount({ told }: StoreProcess): number {
  const open = new Set<string>();
  for (const one of told) {
    if (one.told === "taken") open.add(one.turnId);
    else if (one.told === "ended") open.delete(one.turnId);
  }
  return open.size;
}

class KillRun {
  readonly findings: Finding[] = [];
  readonly #bundle: WorkerBundle;
  readonly #options: KillOptions;
  readonly #random: Pick<Random, "unit">;
  #processes: StoreProcess[] = [];
  #startedCount = 0;
  #path = "";
  #expectation = new Expectation("granted", []);
  #counts = { kills: 0, audits: 0, appends: 0, kept: 0, acknowledgements: 0, cutTurns: 0 };

  constructor(bundle: WorkerBundle, options: KillOptions) {
    this.#bundle = bundle;
    this.#options = options;
    this.#random = virtualHost({ seed: options.seed }).random;
  }

  async run(): Promise<KillReport> {
    try {
      while (this.#counts.kills < this.#options.rounds) {
        if (this.#counts.audits % auditsPerStore === 0) await this.#beginStore();
        await this.#untilAudit();
      }
    } finally {
      for (const one of this.#processes) one.kill();
      await Promise.all(this.#processes.map((one) => one.ended));
    }
    return { findings: this.findings, ...this.#counts };
  }

  async #beginStore(): Promise<void> {
    this.#path = join(await mkdtemp(join(this.#bundle.folder, "kill-")), "state.db");
    this.#expectation = new Expectation("granted", sessionIdsOf(this.#options.sessionCount));
  }

  async #untilAudit(): Promise<void> {
    const { processCount, rounds } = this.#options;
    this.#processes = Array.from({ length: processCount }, () => this.#start());
    for (let count = 0; count < killsPerAudit && this.#counts.kills < rounds - processCount; count++) {
      const victim = await this.#anyReady();
      await pause(this.#random.unit() * lifeMsMax);
      await this.#kill([victim]);
      this.#processes.push(this.#start());
    }
    await this.#anyReady();
    await pause(this.#random.unit() * lifeMsMax);
    await this.#kill(this.#processes);
    await this.#audit();
  }

  #start(): StoreProcess {
    const { sessionCount, laneCount, seed, mode } = this.#options;
    const number = ++this.#startedCount;
    const workload: Workload = {
      path: this.#path,
      name: `w${number}`,
      seed: seed * 100_000 + number,
      sessionCount,
      laneCount,
      turnCount: 0,
      lifeCount: 1,
      mode,
    };
    return new StoreProcess(this.#bundle.script, workload);
  }

  async #anyReady(): Promise<StoreProcess> {
    for (;;) {
      const ended = this.#processes.find((one) => one.hasEnded);
      if (ended) throw new Error(`A process ended by itself: ${ended.stderr} ${JSON.stringify(ended.told.slice(-2))}`);
      const ready = this.#processes.filter((one) => one.isReady);
      const one = ready[Math.floor(this.#random.unit() * ready.length)];
      if (one && ready.length * 2 > this.#processes.length) return one;
      await pause(5);
    }
  }

  async #kill(victims: readonly StoreProcess[]): Promise<void> {
    for (const victim of victims) victim.kill();
    await Promise.all(victims.map((victim) => victim.ended));
    this.#processes = this.#processes.filter((one) => !victims.includes(one));
    for (const victim of victims) {
      this.#counts.kills++;
      this.#counts.cutTurns += cutTurnCount(victim);
      this.#take(victim);
    }
  }

  #take(victim: StoreProcess): void {
    const grants = new Map<string, number>();
    for (const told of victim.told) {
      if (!isReport(told)) this.#expectation.add(told);
      if (told.told === "granted") {
        if (told.fencingToken <= (grants.get(told.sessionId) ?? 0))
          this.findings.push({
            kind: "token",
            detail: `${victim.workload.name} was granted ${told.sessionId} backwards`,
          });
        grants.set(told.sessionId, told.fencingToken);
      }
      if (told.told === "refused") this.#report("rule", victim, `${told.attempt} was answered ${told.answer}`);
      if (told.told === "failed") this.#report("rule", victim, `${told.attempt} failed: ${told.failure.message}`);
    }
    if (victim.stderr !== "") this.#report("rule", victim, `wrote to stderr: ${victim.stderr}`);
  }

  #report(kind: Finding["kind"], { workload }: StoreProcess, detail: string): void {
    this.findings.push({ kind, detail: `${workload.name}: ${detail}` });
  }

  async #audit(): Promise<void> {
    this.findings.push(...(await auditStore(this.#path, this.#expectation)));
    this.#counts.audits++;
    if (this.#counts.audits % auditsPerStore === 0 || this.#counts.kills >= this.#options.rounds) {
      this.#counts.appends += this.#expectation.appendCount;
      this.#counts.kept += this.#expectation.keptCount;
      this.#counts.acknowledgements += this.#expectation.acknowledgementCount;
    }
  }
}

/** Lets processes work on stores while they are killed at random, and audits what they acknowledged. */
export function runKills(bundle: WorkerBundle, options: KillOptions): Promise<KillReport> {
  return new KillRun(bundle, options).run();
}
