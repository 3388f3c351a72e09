import type { CodedError } from "@turnkeeper/kernel";

/** The codes of this package: what it throws, and faults that are reported but never thrown. */
export type TurnLivenessErrorCode =
  /** A setting or a bound is out of range; the message names it, what was expected and what came. */
  | "OPTION_INVALID"
  /** Reported: the abort of a stalled turn has failed three times without progress in between; context `{name, count}`. */
  | "ABORT_FAILING"
  /** Reported: a callback of the watch threw; the watch went on. */
  | "CALLBACK_FAILED"
  /** Reported: the lease could not be confirmed after a gap; nobody was judged on that look. */
  | "LEASE_UNCONFIRMED";

/** Takes what went wrong beside the watch: it never ends the watch, and is never silent. */
export type FaultReporter = (fault: CodedError<TurnLivenessErrorCode>) => void;
