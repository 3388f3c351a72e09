export type { ChildEnd, ChildNotice, ParentCall } from "./child.ts";
export { childNotice, numberedNoticeId, wantsTurn } from "./child.ts";
export type { Grant, Holder, ProcessIdentity, Runner } from "./identity.ts";
export type { JsonValue } from "./json.ts";
export { canonicalJson, digestOf } from "./json.ts";
export type {
  AssistantBody,
  AssistantPart,
  Entry,
  EntryBody,
  EntryDraft,
  NoticeBody,
  ProviderFields,
  ProviderToolPart,
  ReasoningPart,
  SummaryBody,
  TextPart,
  ToolBody,
  ToolCallPart,
  ToolStatus,
  Usage,
  UserBody,
} from "./entry.ts";
export { callsOf, entryText, takenEntry } from "./entry.ts";
export type {
  Delivery,
  InboxStore,
  InputEnd,
  InputRecord,
  Occupation,
  OfferRequest,
  OfferResult,
  OnBusy,
  PendingInput,
  SettledInput,
  TakenInput,
  WithdrawResult,
} from "./inbox.ts";
export type {
  AcquireRequest,
  AcquireResult,
  HandOver,
  LeaseStore,
  LeaseView,
  ReleaseResult,
  RenewResult,
} from "./lease.ts";
export type {
  AppendRequest,
  AppendResult,
  CompactionBasis,
  CompactionHealthRequest,
  CompactionHealthResult,
  CompactionRequest,
  CompactionResult,
  LoadOptions,
  SearchHit,
  SearchOptions,
  SearchPage,
  Transcript,
  TranscriptStore,
} from "./transcript.ts";
export type { CompactionHealth } from "./compaction-health.ts";
export { coolDownMsOf, withCoolDown } from "./compaction-health.ts";
export type {
  EndedTurn,
  EndRequest,
  EndResult,
  InterruptReason,
  OpenTurn,
  OpenTurnView,
  RequestStopResult,
  RunningTurn,
  Predecessor,
  SettledTurn,
  SettleForeignResult,
  StopRequest,
  SuspendedTurn,
  TurnOutcome,
  TurnRecord,
  TurnStore,
} from "./turn.ts";
export type {
  AnswerRequest,
  AnswerResult,
  AskedCall,
  AwaitedChild,
  CallAnswer,
  CallDecision,
  ChildWait,
  SuspendRequest,
  SuspendResult,
} from "./approval.ts";
export {
  endByStop,
  hasBeenSuspended,
  isOverdue,
  leftChild,
  mayResume,
  overdueStop,
  resultOfOpenCall,
  unansweredCalls,
  withAnswer,
  withAsked,
  withChildEnd,
} from "./approval.ts";
export type {
  ImportResult,
  LastEntry,
  SessionPage,
  SessionRecord,
  SessionRecords,
  SessionStore,
  SessionToken,
  SessionTotals,
  SummaryPlace,
  UnchangedRequest,
} from "./session.ts";
export type { SessionFacts } from "./session-facts.ts";
export { joinFacts, sessionFactsOf } from "./session-facts.ts";
export { importOf } from "./import.ts";
export { titleOf } from "./title.ts";
export { foldText, searchTerms, snippetOf } from "./search-text.ts";
export type { SpooledStep, SpoolStep, SpoolStore, SpoolView } from "./spool.ts";
export { fateOfStep, keyOfSpooled } from "./spool.ts";
export type { StateStore } from "./state-store.ts";
export type { StoreErrorCode } from "./errors.ts";
export type { BootInstant, Claim, QueuedInput } from "./decisions.ts";
export { claim, claimPeriodMs, firstWaiter, nowOf, standingOf, withPredecessor } from "./decisions.ts";
export type { Verification, Violation } from "./verify.ts";
export { beginVerification, verifyRecords } from "./verify.ts";
export type { MemoryStore } from "./memory/memory-store.ts";
export { createMemoryStore } from "./memory/memory-store.ts";
