export { createProgressClock } from "./progress-clock.ts";
export type { AbortClaim, ProgressClock, ProgressSnapshot } from "./progress-clock.ts";
export type { OpenWait, WaitDeclaration, WaitKind } from "./declared-waits.ts";
export { watchTurn } from "./watch-turn.ts";
export type { WatchHandle, WatchTurnDependencies } from "./watch-turn.ts";
export type { StallObservation, WatchedTurn } from "./watched-turn.ts";
export { resolveTurnLivenessSettings, turnLivenessDefaults } from "./settings.ts";
export type { TurnLivenessSettings } from "./settings.ts";
export type { FaultReporter, TurnLivenessErrorCode } from "./errors.ts";
