export { virtualProcesses } from "./virtual-presence.ts";
export type { VirtualProcess, VirtualProcesses } from "./virtual-presence.ts";
