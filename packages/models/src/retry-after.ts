/** How long a provider asks to be left alone, in milliseconds, where its reply says so. */

const finitePositive = (ms: number): number | undefined => (Number.isFinite(ms) && ms >= 0 ? Math.ceil(ms) : undefined);

/**
 * Reads `retry-after-ms`, else `Retry-After` in seconds or as a date (RFC 9110 §10.2.3). A date is measured against the
 * reply's own `Date`, so the clock of this machine has no say; without one it means nothing.
 */
export function retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
  const exact = headers["retry-after-ms"]?.trim();
  if (exact && /^\d+(\.\d+)?$/.test(exact)) return finitePositive(Number(exact));
  const value = headers["retry-after"]?.trim();
  if (!value) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return finitePositive(Number(value) * 1000);
  // Date.parse takes nearly anything for a date; an HTTP date ends with GMT.
  if (!value.endsWith("GMT")) return undefined;
  const sentAtMs = Date.parse(headers["date"] ?? "");
  const retryAtMs = Date.parse(value);
  if (Number.isNaN(sentAtMs) || Number.isNaN(retryAtMs)) return undefined;
  return Math.max(0, retryAtMs - sentAtMs);
}
