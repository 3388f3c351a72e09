/** What the grants of one session must be, by the one clock that all processes share. */
import { leaseBounds } from "./bounds.ts";
import type { GrantSpan, RecordIndex } from "./record-index.ts";

/** Each process counts boot time from its own reading of /proc/uptime, which has steps of 10 ms. */
const bootClockNs = 10_000_000;
const ttlNs = leaseBounds.ttlMs * 1_000_000;

function named({ grant }: GrantSpan): string {
  return `token ${grant.fencingToken} of ${grant.worker}`;
}

/** LEASE-2: a token is granted once, and none after a greater one was acknowledged. */
function* tokensGrow({ spans }: RecordIndex): Generator<string> {
  let next: GrantSpan | undefined;
  let firstAbove: GrantSpan | undefined;
  for (const span of spans.toReversed()) {
    if (next?.grant.fencingToken === span.grant.fencingToken)
      yield `LEASE-2: ${named(span)} was granted to ${next.grant.worker} too`;
    if (firstAbove && firstAbove.grant.atNs < span.grant.askedNs)
      yield `LEASE-2: ${named(span)} was granted after ${named(firstAbove)} was`;
    if (!firstAbove || span.grant.atNs < firstAbove.grant.atNs) firstAbove = span;
    next = span;
  }
}

/** When the store last heard of the grant, at the earliest. */
function lastHeardNs({ grant, events }: GrantSpan): number {
  const renewals = events.flatMap((event) => (event.event === "renewed" ? [event.askedNs] : []));
  return Math.max(grant.askedNs, ...renewals);
}

/**
 * LEASE-1: while a holder that runs believes, nobody is granted. LEASE-5: one that was stopped, or stalled, keeps its
 * lease to its expiry; only one that is dead or has given up loses it before.
 */
function* noneIsOvertaken(index: RecordIndex): Generator<string> {
  for (const [at, span] of index.spans.entries()) {
    const next = index.spans[at + 1];
    if (!next) continue;
    const { grant, believedUntilNs } = span;
    const takenNs = next.grant.atNs;
    if (takenNs >= believedUntilNs) {
      // It had given up, or this is its last word before it died.
      if (span.events.some(({ event, atNs }) => (event === "lost" || event === "ending") && atNs <= takenNs)) continue;
    } else if (!index.wasStopped(grant.worker, grant.askedNs, believedUntilNs)) {
      yield `LEASE-1: ${named(next)} was granted while ${named(span)} ran and believed`;
    }
    const sinceNs = takenNs - lastHeardNs(span);
    if (!index.wasKilled(grant.worker, takenNs) && sinceNs < ttlNs - bootClockNs)
      yield `LEASE-5: ${named(next)} was granted ${(sinceNs / 1e6).toFixed(1)} ms after ${named(span)} was last renewed`;
  }
}

export function* grantViolations(index: RecordIndex): Generator<string> {
  yield* tokensGrow(index);
  yield* noneIsOvertaken(index);
}
