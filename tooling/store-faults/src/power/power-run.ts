import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { Random } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { Told } from "../acknowledgement.ts";
import { auditStore } from "../audit.ts";
import type { Finding } from "../audit.ts";
import { Expectation } from "../expectation.ts";
import { isReport, StoreProcess } from "../store-process.ts";
import type { WorkerBundle } from "../worker-bundle.ts";
import { sessionIdsOf } from "../workload.ts";
import type { Workload } from "../workload.ts";
import { Disk } from "./disk.ts";
import type { Fate } from "./disk.ts";
import { TraceReader, tracer } from "./trace.ts";
import type { Operation } from "./trace.ts";

export interface PowerOptions {
  /** How many disk states are audited, over all traces. */
  readonly states: number;
  readonly traces: number;
  readonly seed: number;
  readonly mode: "honest" | "normal";
}

export interface PowerReport {
  readonly findings: readonly Finding[];
  readonly states: number;
  /** States with something lost, or damaged. */
  readonly harmedStates: number;
  /** States in which what was acknowledged had to be there. */
  readonly bindingStates: number;
  readonly operations: number;
  readonly appends: number;
  /** Steps that were kept in the spool. */
  readonly kept: number;
  readonly syncs: number;
  /** WALs that were begun anew after a checkpoint, and files that were cut or removed. */
  readonly resets: number;
}

const sessionCount = 6;
const work = { sessionCount, laneCount: 6, turnCount: 5, lifeCount: 3 } as const;
/** A checkpoint syncs too: so many of them would hide for most of the time that nothing else does. */
const checkpointPages = { honest: 12, normal: 400 } as const;
/** How many cuts come right behind an acknowledgement: there it is freshest. */
const freshShare = 0.5;

/** A folder that the store makes itself: its name has to be certain too. */
function storePath(root: string): string {
  return join(root, "home", "state.db");
}

interface Cut {
  /** After so many operations. */
  readonly index: number;
  readonly fate: Fate;
}

/** Each cut has a temper: everything since the last sync gone, everything there, or each change as chance has it. */
function fateOf({ unit }: Pick<Random, "unit">): Fate {
  const temper = unit();
  const [kept, torn] = temper < 0.15 ? [0, 0] : temper < 0.25 ? [1, 0] : [0.1 + 0.6 * unit(), 0.3];
  return {
    ofChange: () => {
      const chance = unit();
      if (chance < kept) return "kept";
      return chance < kept + torn * (1 - kept) ? "torn" : "dropped";
    },
    isSectorKept: () => unit() < 0.5,
  };
}

function plannedCuts(operations: readonly Operation[], count: number, random: Pick<Random, "unit">): Cut[] {
  const fresh = operations.flatMap((operation, index) => (operation.act === "told" ? [index + 1] : []));
  const cuts = Array.from({ length: count }, (): Cut => {
    const isFresh = random.unit() < freshShare;
    const index = isFresh
      ? (fresh[Math.floor(random.unit() * fresh.length)] ?? 0)
      : Math.floor(random.unit() * operations.length) + 1;
    return { index, fate: fateOf({ unit: () => random.unit() }) };
  });
  return cuts.toSorted((left, right) => left.index - right.index);
}

/** Lets a store process work under the tracer, and answers what it did to the disk and told, in order. */
async function tracedRun(bundle: WorkerBundle, root: string, options: PowerOptions): Promise<Operation[]> {
  const log = `${root}.strace`;
  await mkdir(root);
  const { seed, mode } = options;
  const shape = { seed, mode, checkpointPages: checkpointPages[mode] };
  const workload: Workload = { ...work, ...shape, path: storePath(root), name: "w" };
  const worker = new StoreProcess(bundle.script, workload, tracer(log));
  const { code } = await worker.ended;
  const failed = worker.told.filter((told) => told.told === "failed" || told.told === "refused");
  if (code !== 0 || failed.length > 0)
    throw new Error(`The traced process ended with ${code}: ${worker.stderr} ${JSON.stringify(failed[0])}`);
  const operations = new TraceReader(root).read(await readFile(log, "latin1"));
  await rm(log);
  await rm(root, { recursive: true });
  return operations;
}

/** Puts the files of a disk state in a folder of their own, and audits the store in it. */
async function audited(files: ReadonlyMap<string, Buffer>, root: string, place: string, expectation: Expectation) {
  const moved = (path: string): string => join(place, relative(root, path));
  await mkdir(place);
  for (const [path, bytes] of files) {
    await mkdir(dirname(moved(path)), { recursive: true });
    await writeFile(moved(path), bytes);
  }
  const findings = await auditStore(storePath(place), expectation);
  await rm(place, { recursive: true });
  return findings;
}

/** Traces a store at work, cuts the power at random points of the trace, and audits what each disk could hold then. */
export async function runPowerCuts(bundle: WorkerBundle, options: PowerOptions): Promise<PowerReport> {
  const { states, traces, seed } = options;
  const findings: Finding[] = [];
  const counts = {
    states: 0,
    harmedStates: 0,
    bindingStates: 0,
    operations: 0,
    appends: 0,
    kept: 0,
    syncs: 0,
    resets: 0,
  };
  for (let trace = 0; trace < traces; trace++) {
    const { random } = virtualHost({ seed: seed + trace });
    const root = join(bundle.folder, `power-${options.mode}-${seed + trace}`);
    const operations = await tracedRun(bundle, root, { ...options, seed: seed + trace });
    const disk = new Disk(root);
    const expectation = new Expectation("durable", sessionIdsOf(sessionCount));
    let index = 0;
    for (const cut of plannedCuts(operations, Math.ceil(states / traces), random)) {
      for (; index < cut.index; index++) {
        const operation = operations[index] as Operation;
        disk.apply(operation);
        if (operation.act !== "told") continue;
        const told = JSON.parse(operation.line) as Told;
        if (!isReport(told)) expectation.add(told);
      }
      const found = await audited(disk.afterCut(cut.fate), root, `${root}.cut`, expectation);
      counts.states++;
      if (expectation.acknowledgementCount > 0) counts.bindingStates++;
      if (found.length > 0) counts.harmedStates++;
      findings.push(...found.map(({ kind, detail }) => ({ kind, detail: `after operation ${cut.index}: ${detail}` })));
    }
    counts.operations += operations.length;
    counts.appends += operations.filter((one) => one.act === "told" && one.line.includes('"appended"')).length;
    counts.kept += operations.filter((one) => one.act === "told" && one.line.includes('"kept"')).length;
    counts.syncs += operations.filter((one) => one.act === "sync").length;
    counts.resets += operations.filter(
      (one) => one.act === "cut" || one.act === "remove" || (one.act === "write" && isWalHeader(one)),
    ).length;
  }
  return { findings, ...counts };
}

function isWalHeader({ path, offset }: Extract<Operation, { act: "write" }>): boolean {
  return path.endsWith("-wal") && offset === 0;
}
