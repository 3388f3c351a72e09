/** What this package throws. Refused commits are values, not errors. */
export type CompressionFenceErrorCode =
  /** An option is unknown or out of range; the message names it, what was expected and what came. */
  "OPTION_INVALID";
