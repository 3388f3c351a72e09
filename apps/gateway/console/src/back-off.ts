const firstMs = 500;
/** Who waits at the page sees it come back soon after the gateway does; a gateway that is down is not hammered. */
const longestMs = 15_000;

/** How long to wait before attempt number `attempt` (0 is the first repetition); `unit` in [0, 1) spreads many pages. */
export function backOffMs(attempt: number, unit: number): number {
  const wholeMs = Math.min(longestMs, firstMs * 2 ** Math.min(attempt, 10));
  return Math.round(wholeMs * (0.75 + unit / 2));
}
