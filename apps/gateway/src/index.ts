export { startGateway } from "./gateway.ts";
export type { Gateway, GatewayDeps } from "./gateway.ts";
export { gatewayDefaults } from "./gateway-options.ts";
export { MeasuredStore } from "./measured-store.ts";
export type { MeasuredWrite } from "./measured-store.ts";
export type { GatewayLimits, GatewayOptions, LogOptions } from "./gateway-options.ts";
