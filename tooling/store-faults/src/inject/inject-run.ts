import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { auditStore } from "../audit.ts";
import type { Finding } from "../audit.ts";
import { Expectation } from "../expectation.ts";
import { isReport, StoreProcess } from "../store-process.ts";
import type { WorkerBundle } from "../worker-bundle.ts";
import { sessionIdsOf } from "../workload.ts";
import type { Workload } from "../workload.ts";
import type { Fault } from "./fault.ts";

export interface InjectOptions {
  readonly faults: readonly Fault[];
  /** At how many of its calls each fault is tried, spread over all calls of a run. */
  readonly pointCount: number;
  /** Ends the sweep once something was found: for the control. */
  readonly isEndedByFinding?: boolean;
}

export interface FaultReport {
  readonly fault: string;
  readonly findings: readonly Finding[];
  /** Runs in which the call was reached and the fault was met. */
  readonly hits: number;
  readonly acknowledgements: number;
  /** Store errors by code, as the process was told. */
  readonly codes: Readonly<Record<string, number>>;
  readonly runs: number;
  /** Runs that ended sealed, killed, waiting, or went on to their end. */
  readonly sealed: number;
  readonly killed: number;
  readonly waited: number;
  readonly finished: number;
}

const sessionCount = 4;
/** Small enough to be swept, and still all of it: making the store, group commits, checkpoints, closing, opening again. */
const work = { sessionCount, laneCount: 4, turnCount: 3, lifeCount: 2, checkpointPages: 12, mode: "honest" } as const;
/** A run takes a second or two, on a busy machine some more; what takes longer than this waits for something. */
const patienceMs = 120_000;
/** Where waiting is expected nobody needs to see the end of it. */
const shortPatienceMs = 10_000;

interface Met {
  readonly process: StoreProcess;
  readonly path: string;
  readonly folder: string;
  readonly hasWaited: boolean;
  /** The traced calls, a line each. */
  readonly calls: readonly string[];
}

/** Runs a process on a new store with the calls on its files traced, and one of them tampered with. */
async function tracedRun(
  bundle: WorkerBundle,
  { name, calls, mayWait }: Pick<Fault, "name" | "calls" | "mayWait">,
  tampering: readonly string[],
  spooledTurnCount: number,
): Promise<Met> {
  const folder = join(bundle.folder, `inject-${name}`);
  await mkdir(folder);
  const path = join(folder, "state.db");
  const log = join(folder, "calls");
  const spooled = sessionIdsOf(sessionCount).map((sessionId) => `-spool/${sessionId}.jsonl`);
  const files = ["", "-wal", "-shm", "-spool", ...spooled].flatMap((end) => ["-P", `${path}${end}`]);
  // A filter in the kernel makes a run faster, and loses injected signals.
  const filter = tampering.some((option) => option.includes("signal=")) ? [] : ["--seccomp-bpf"];
  const options = ["-f", "-qq", "-s", "0", ...filter, "-o", log, ...files, "-e", `trace=${calls}`, ...tampering];
  const workload: Workload = { ...work, path, name: "w", seed: 1, spooledTurnCount };
  const process = new StoreProcess(bundle.script, workload, ["strace", ...options]);
  let hasWaited = false;
  const deadline = setTimeout(
    () => {
      hasWaited = true;
      process.kill();
    },
    mayWait ? shortPatienceMs : patienceMs,
  );
  await process.ended;
  clearTimeout(deadline);
  const lines = (await readFile(log, "latin1")).split("\n").map((line) => line.replace(/^\d+ +/, ""));
  return { process, path, folder, hasWaited, calls: lines.filter((line) => /^[a-z0-9]+\(/.test(line)) };
}

/**
 * How often a store at work makes each kind of call, told once for a whole sweep; at least once those of the spool. Its
 * lanes take turns as the disk lets them, so no other run makes just as many.
 */
async function callCounts(bundle: WorkerBundle, faults: readonly Fault[]): Promise<(fault: Fault) => number> {
  const all = [...new Set(faults.flatMap(({ calls }) => calls.split(",")))];
  const { calls, folder } = await tracedRun(bundle, { name: "untouched", calls: all.join(",") }, [], 1);
  await rm(folder, { recursive: true });
  return (fault) => calls.filter((line) => fault.calls.split(",").includes(line.slice(0, line.indexOf("(")))).length;
}

class Sweep {
  readonly findings: Finding[] = [];
  readonly #bundle: WorkerBundle;
  readonly #fault: Fault;
  readonly #counts = { runs: 0, hits: 0, acknowledgements: 0, sealed: 0, killed: 0, waited: 0, finished: 0 };
  readonly #codes: Record<string, number> = {};

  constructor(bundle: WorkerBundle, fault: Fault) {
    this.#bundle = bundle;
    this.#fault = fault;
  }

  async run(callCount: number, { pointCount, isEndedByFinding }: Omit<InjectOptions, "faults">): Promise<FaultReport> {
    const count = Math.min(pointCount, callCount);
    for (let index = 0; index < count; index++) {
      await this.#try(1 + Math.floor(((index + 0.5) * callCount) / count));
      if (isEndedByFinding && this.findings.length > 0) break;
    }
    return { fault: this.#fault.name, findings: this.findings, ...this.#counts, codes: this.#codes };
  }

  async #try(point: number): Promise<void> {
    const { name, calls, action, isLasting, mayWait, isOfSpool } = this.#fault;
    const tampering = ["-e", `inject=${calls}:${action}:when=${point}${isLasting ? "+" : ""}`];
    // Each spooled turn writes to the spool and claims it, so with as many of them the call is made for certain.
    const spooledTurnCount = isOfSpool ? point : 0;
    const tried = { ...this.#fault, name: `${name}-${point}` };
    const met = await tracedRun(this.#bundle, tried, tampering, spooledTurnCount);
    const { process, path, folder, hasWaited } = met;
    const where = `${name} at call ${point}`;
    const report = (kind: Finding["kind"], detail: string): void =>
      void this.findings.push({ kind, detail: `${where}: ${detail}` });

    const { signal } = await process.ended;
    const isKilled = signal === "SIGKILL" && !hasWaited;
    const isDone = process.told.at(-1)?.told === "done";
    this.#counts.runs++;
    if (isKilled || met.calls.some((line) => line.includes("(INJECTED)"))) this.#counts.hits++;
    if (hasWaited) this.#counts.waited++;
    else if (isKilled) this.#counts.killed++;
    else if (!isDone)
      report("rule", `the process ended with ${signal ?? "no word"}: ${process.stderr.slice(0, 1_000)}`);
    if (hasWaited && !mayWait) report("rule", "the process waits");

    const expectation = new Expectation("granted", sessionIdsOf(sessionCount), this.#fault.mayBeLate);
    const sealedBy = this.#judge(process, expectation, report);
    if (sealedBy !== undefined) this.#counts.sealed++;
    else if (isDone) this.#counts.finished++;
    this.#counts.acknowledgements += expectation.acknowledgementCount;
    for (const { kind, detail } of await auditStore(path, expectation)) report(kind, detail);
    await rm(folder, { recursive: true });
  }

  /** Takes what was acknowledged, finds what should not have been said, and answers what sealed the store. */
  #judge(
    process: StoreProcess,
    expectation: Expectation,
    report: (kind: Finding["kind"], detail: string) => void,
  ): string | undefined {
    let sealedBy: string | undefined;
    for (const told of process.told) {
      if (!isReport(told)) {
        expectation.add(told);
        if (sealedBy !== undefined) report("rule", `acknowledged ${told.told} after ${sealedBy}`);
      }
      if (told.told === "refused") report("rule", `${told.attempt} was answered ${told.answer}`);
      if (told.told !== "failed") continue;
      const { code, systemCode, isSealed, message } = told.failure;
      if (code === undefined) report("rule", `${told.attempt} failed without a code: ${message}`);
      const named = systemCode === undefined ? `${code}` : `${code} ${systemCode}`;
      this.#codes[named] = (this.#codes[named] ?? 0) + 1;
      if (isSealed || systemCode?.includes("FSYNC")) sealedBy ??= message;
    }
    return sealedBy;
  }
}

/** Lets one system call of a store at work fail, run by run, and audits what was acknowledged before and after it. */
export async function runInjections(bundle: WorkerBundle, options: InjectOptions): Promise<readonly FaultReport[]> {
  const countOf = await callCounts(bundle, options.faults);
  const reports: FaultReport[] = [];
  for (const fault of options.faults) reports.push(await new Sweep(bundle, fault).run(countOf(fault), options));
  return reports;
}
