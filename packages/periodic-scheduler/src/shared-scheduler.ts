import { systemHost } from "@turnkeeper/kernel";
import { createPeriodicScheduler } from "./periodic-scheduler.ts";
import type { PeriodicScheduler } from "./periodic-scheduler.ts";

/** A scheduler that belongs to everybody, so nobody closes it. */
export type SharedScheduler = Pick<PeriodicScheduler, "schedule">;

// Under `Symbol.for`, so that two installed copies of this package still share one timer.
const registryKey = Symbol.for("turnkeeper.periodic-scheduler.shared/1");

interface Registry {
  [registryKey]?: SharedScheduler;
}

/** The one scheduler of this process (of this thread, where there are several), made when it is first asked for. */
export function sharedScheduler(): SharedScheduler {
  const registry: typeof globalThis & Registry = globalThis;
  if (!registry[registryKey]) {
    const scheduler = createPeriodicScheduler({ host: systemHost });
    registry[registryKey] = Object.freeze({ schedule: scheduler.schedule.bind(scheduler) });
  }
  return registry[registryKey];
}
