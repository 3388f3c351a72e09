/** One kind of periodic timers in a process of its own: node --expose-gc timers.js SETTINGS; prints a `TimersReport`. */
import { performance } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { sharedScheduler } from "@turnkeeper/periodic-scheduler";
import type { PeriodicHandle } from "@turnkeeper/periodic-scheduler";
import { peer } from "../peers.ts";

export interface TimersSettings {
  readonly kind: "ours" | "setInterval" | "toad-scheduler";
  readonly count: number;
  /** Half of the timers have this period, half twice as long a one; the CPU is looked at for one of it. */
  readonly periodMs: number;
}

export interface TimersReport {
  readonly cpuUs: number;
  readonly firings: number;
  readonly wakeUpsPerSecond: number;
  readonly bytesEach: number;
}

interface Timers {
  add(body: () => void, everyMs: number): unknown;
  remove(handle: unknown): void;
}

function openTimers(kind: TimersSettings["kind"]): Timers {
  if (kind === "ours") {
    const scheduler = sharedScheduler();
    return {
      add: (body, everyMs) => scheduler.schedule(body, everyMs, { name: "bench" }),
      remove: (handle) => void (handle as PeriodicHandle).cancel(),
    };
  }
  if (kind === "setInterval") return { add: setInterval, remove: (handle) => clearInterval(handle as NodeJS.Timeout) };
  const { ToadScheduler, SimpleIntervalJob, Task } = peer("toad-scheduler");
  const scheduler = new ToadScheduler();
  let count = 0;
  return {
    add: (body, everyMs) => {
      const id = `job-${++count}`;
      scheduler.addSimpleIntervalJob(new SimpleIntervalJob({ milliseconds: everyMs }, new Task(id, body), { id }));
      return id;
    },
    remove: (handle) => void scheduler.removeById(handle as string),
  };
}

const { kind, count, periodMs } = JSON.parse(process.argv[2] ?? "{}") as TimersSettings;
const timers = openTimers(kind);
let firings = 0;
// One body for all, so that nothing of the caller's is counted.
const body = (): void => void firings++;
const periodOf = (index: number): number => (index % 2 === 0 ? periodMs : 2 * periodMs);

function heapBytes(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

// Our own timer keeps no process alive.
const keepAlive = setTimeout(() => {}, 600_000);

/** The heap that each takes, its handle with it. */
function measureBytes(): number {
  const handles = Array.from<unknown>({ length: count }).fill(0);
  const addAll = (): void => {
    for (let index = 0; index < count; index++) handles[index] = timers.add(body, 10 * periodOf(index));
  };
  const removeAll = (): void => {
    for (const handle of handles) timers.remove(handle);
    handles.fill(0);
  };
  // Once before, so that the code is compiled and every table has grown.
  addAll();
  removeAll();
  const before = heapBytes();
  addAll();
  const bytes = heapBytes() - before;
  removeAll();
  return bytes / count;
}

const bytesEach = measureBytes();

// What the runtime compiles once is no cost of a process that runs for days: it has compiled before anything is looked at.
const hasty = Array.from({ length: 500 }, (_, index) => timers.add(body, index % 2 === 0 ? 50 : 100));
await pause(2_000);
for (const handle of hasty) timers.remove(handle);

// Made over one period, as sessions come: not all due at once.
const stepMs = 10;
const startedMs = performance.now();
for (let made = 0; made < count;) {
  const due = Math.min(count, Math.ceil((count * (performance.now() - startedMs)) / periodMs));
  for (; made < due; made++) timers.add(body, periodOf(made));
  await pause(stepMs);
}
await pause(periodMs / 10);
const loopCount = (): number => performance.nodeTiming.uvMetricsInfo?.loopCount ?? Number.NaN;
const [firingsBefore, loopsBefore, cpuBefore] = [firings, loopCount(), process.cpuUsage()];
await pause(periodMs);
const { user, system } = process.cpuUsage(cpuBefore);
const report: TimersReport = {
  cpuUs: user + system,
  firings: firings - firingsBefore,
  // Less the one that ended this look.
  wakeUpsPerSecond: ((loopCount() - loopsBefore - 1) * 1_000) / periodMs,
  bytesEach,
};
clearTimeout(keepAlive);
process.stdout.write(JSON.stringify(report), () => process.exit());
