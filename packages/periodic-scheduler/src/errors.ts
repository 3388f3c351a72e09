/** What this package throws. A failing task is not an error of the scheduler: it is reported and run again. */
export type PeriodicSchedulerErrorCode =
  /** An option or interval is unknown or out of range; the message names it, what was expected and what came. */
  | "OPTION_INVALID"
  /** `schedule` after `close`: the task would never run. */
  | "SCHEDULER_CLOSED";
