export { CodedError } from "./coded-error.ts";
export type { CodedErrorOptions, ErrorContext } from "./coded-error.ts";
export type { Cancel, Clock, Host, Random, TimerOptions, Timers } from "./host.ts";
export { systemHost } from "./system-host.ts";
