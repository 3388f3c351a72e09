export { acquireTurnLease } from "./acquire.ts";
export type { GrantedLease, TurnLeaseDeps, TurnLeaseResult } from "./acquire.ts";
export { checkTurnLeaseOptions, turnLeaseDefaults } from "./options.ts";
export type { TurnLeaseOptions, WaitingView } from "./options.ts";
export type { ClosingResult, LostRelease, TurnLease } from "./lease.ts";
export type { LossCause, TurnLeaseErrorCode } from "./errors.ts";
export { openProcessPresence } from "./presence.ts";
export type { Liveness, ProcessPresence, ProcessPresenceOptions, WakeResult } from "./presence.ts";
export type { HolderStatus } from "./liveness-socket.ts";
