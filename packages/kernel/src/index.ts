export { CodedError } from "./coded-error.ts";
export type { CodedErrorOptions, ErrorContext } from "./coded-error.ts";
export { faultReporter } from "./fault-reporter.ts";
export type { Cancel, Clock, Host, Random, TimerOptions, Timers } from "./host.ts";
export { systemHost } from "./system-host.ts";
export { messageOf } from "./thrown.ts";
