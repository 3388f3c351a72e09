import type { CodedError } from "@turnkeeper/kernel";

/** The codes of this package: reasons on signals, refusals, and faults that are reported but never thrown. */
export type InterruptErrorCode =
  /** The reason on `signal`, `hardSignal` and a stopped phase; context `{hard, reason, by}`. */
  | "INTERRUPTED"
  /** The reason on the signal of a phase that a redirect ended early: the turn goes on, with the user's text. */
  | "REDIRECTED"
  /** A phase was entered after the turn had finished. */
  | "TURN_FINISHED"
  /** Reported: a listener on one of the signals threw or rejected; every other listener ran. */
  | "LISTENER_FAILED"
  /** Reported: the commit barrier threw; an unconditional stop went on without it. */
  | "BARRIER_FAILED"
  /** An option is unknown or out of range; the message names it, what was expected and what came. */
  | "OPTION_INVALID";

/** Takes what went wrong beside a stop: it never keeps the stop from happening, and is never silent. */
export type FaultReporter = (fault: CodedError<InterruptErrorCode>) => void;
