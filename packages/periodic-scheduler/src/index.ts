export type { PeriodicSchedulerErrorCode } from "./errors.ts";
export type { PeriodicSchedulerOptions } from "./options.ts";
export type { CancelOptions, PeriodicBody, PeriodicHandle } from "./periodic-task.ts";
export { createPeriodicScheduler } from "./periodic-scheduler.ts";
export type { PeriodicScheduler, PeriodicSchedulerDeps } from "./periodic-scheduler.ts";
export { sharedScheduler } from "./shared-scheduler.ts";
export type { SharedScheduler } from "./shared-scheduler.ts";
