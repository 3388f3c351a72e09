import type { IncomingHttpHeaders } from "node:http";

/** `traceparent` of a request, as W3C Trace Context has it; one that is none is passed over, as that says. */
export function traceParentOf({ traceparent }: IncomingHttpHeaders): string | undefined {
  if (typeof traceparent !== "string") return undefined;
  const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(traceparent) ?? [];
  const isNothing = traceId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId ?? "");
  return isNothing ? undefined : traceparent;
}
