export { createProgressClock } from "./progress-clock.ts";
export type { AbortClaim, ProgressClock, ProgressSnapshot } from "./progress-clock.ts";
export type { OpenWait, WaitDeclaration, WaitKind } from "./declared-waits.ts";
export { watchTurn } from "./watch-turn.ts";
export type { StallObservation, WatchedTurn, WatchHandle, WatchTurnDependencies } from "./watch-turn.ts";
export { resolveTurnLivenessSettings, turnLivenessDefaults } from "./settings.ts";
export type { TurnLivenessSettings } from "./settings.ts";
export type { TurnLivenessErrorCode } from "./errors.ts";
export type { FaultReporter } from "./fault.ts";
