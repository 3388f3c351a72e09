export type { ConformanceCase, ConformanceHarness, LeaseOnly } from "./conformance-case.ts";
export { conformanceCases } from "./conformance.ts";
export { leaseCases } from "./cases/lease-cases.ts";
export { crashBetweenCalls } from "./crash-between-calls.ts";
