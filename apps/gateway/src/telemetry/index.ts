export { traceTurns } from "./turn-traces.ts";
export type { TraceTurnsOptions } from "./turn-traces.ts";
