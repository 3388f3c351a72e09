export { startGateway } from "./gateway.ts";
export type { Gateway, GatewayDeps, GatewayOptions } from "./gateway.ts";
