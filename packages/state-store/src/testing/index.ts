export type { ConformanceCase, ConformanceHarness, LeaseOnly } from "./conformance-case.ts";
export { conformanceCases, leaseCases } from "./conformance.ts";
export { crashBetweenCalls } from "./crash-between-calls.ts";
export type { ScriptAction, ScriptStep } from "./script.ts";
export { randomScript } from "./script.ts";
export type { ScriptRun } from "./script-run.ts";
export { runScript } from "./script-run.ts";
