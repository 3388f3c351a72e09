export { startGateway } from "./gateway.ts";
export type { Gateway, GatewayDeps } from "./gateway.ts";
export { gatewayDefaults } from "./gateway-options.ts";
export type { GatewayLimits, GatewayOptions, LogOptions } from "./gateway-options.ts";
