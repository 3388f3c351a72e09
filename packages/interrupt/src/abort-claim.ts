/**
 * The right to stop a turn because it makes no progress. Any progress after it was given voids it.
 *
 * Structural, so that whoever judges progress hands its own claim over and neither package imports the other.
 */
export interface AbortClaim {
  /** Takes the right: true once, and only if nothing has voided it. Must be synchronous. */
  consume(): boolean;
}
