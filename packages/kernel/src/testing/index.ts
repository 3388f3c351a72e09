export { virtualHost } from "./virtual-host.ts";
export type { VirtualHost, VirtualHostOptions } from "./virtual-host.ts";
