/** What side effects must be: no token protects them, so they must not even start under a lost lease. */
import type { EventOf } from "./history.ts";
import type { RecordIndex } from "./record-index.ts";

function named({ fencingToken, worker }: EventOf<"effect">): string {
  return `an effect under token ${fencingToken} of ${worker}`;
}

/** When the first grant above each token was acknowledged to anybody. */
function overtakings({ spans }: RecordIndex): ReadonlyMap<number, number> {
  const overtakenNs = new Map<number, number>();
  let firstNs = Infinity;
  for (const { grant } of spans.toReversed()) {
    overtakenNs.set(grant.fencingToken, firstNs);
    firstNs = Math.min(firstNs, grant.atNs);
  }
  return overtakenNs;
}

/**
 * How an effect stands to the first greater grant. `stale`: its check came after that grant was acknowledged, or the
 * grant fell between check and start in a process that ran: with no tolerance. `late`: the process was stopped between
 * its check and its start, which no check can prevent; it counts, but is no violation.
 */
function standingOf(index: RecordIndex, effect: EventOf<"effect">, overtakenNs: number): "rightful" | "stale" | "late" {
  if (overtakenNs >= effect.atNs) return "rightful";
  if (overtakenNs < effect.checkedNs) return "stale";
  return index.wasStopped(effect.worker, effect.checkedNs, effect.atNs) ? "late" : "stale";
}

function* overlaps(index: RecordIndex): Generator<string> {
  const effects = index.all("effect");
  const endOf = new Map<EventOf<"effect">, number>();
  for (const span of index.spans) {
    for (const [at, event] of span.events.entries()) {
      const end = span.events.slice(at).find((later) => later.event === "effect-end");
      // Without an end its process was killed in it: it lasted somewhat longer than its start.
      if (event.event === "effect") endOf.set(event, end?.atNs ?? event.atNs);
    }
  }
  for (const [at, effect] of effects.entries()) {
    const endNs = endOf.get(effect) ?? effect.atNs;
    for (let next = at + 1; next < effects.length; next++) {
      const other = effects[next];
      if (!other || other.atNs >= endNs) break;
      const isExcused = index.wasStopped(effect.worker, effect.atNs, endNs);
      if (!isExcused && other.fencingToken !== effect.fencingToken)
        yield `LEASE-3: ${named(other)} started during ${named(effect)}, and both ran`;
    }
  }
}

export function* effectViolations(index: RecordIndex): Generator<string> {
  const overtakenNs = overtakings(index);
  for (const effect of index.all("effect")) {
    const takenNs = overtakenNs.get(effect.fencingToken) ?? Infinity;
    if (standingOf(index, effect, takenNs) !== "stale") continue;
    const sinceMs = ((effect.atNs - takenNs) / 1e6).toFixed(3);
    yield `LEASE-3: ${named(effect)} started ${sinceMs} ms after a greater token was acknowledged`;
  }
  yield* overlaps(index);
}

/** How many effects started late because their process was stopped between check and start. */
export function lateEffectCount(index: RecordIndex): number {
  const overtakenNs = overtakings(index);
  return index
    .all("effect")
    .filter((effect) => standingOf(index, effect, overtakenNs.get(effect.fencingToken) ?? Infinity) === "late").length;
}
