import type { ProgressClock } from "@turnkeeper/turn-liveness";

/** How often a child is looked at, in milliseconds: as a rule its parent's bound is many times that. */
const lookEveryMs = 30_000;

/** Often enough that a parent with a short bound, too, is touched several times in it. */
export function lookEveryMsOf(timeoutMs: number | undefined): number {
  return Math.min(lookEveryMs, (timeoutMs ?? Number.POSITIVE_INFINITY) / 4);
}

/** Looks in a row that find nothing new before a child no longer speaks for its parent: 450 s. */
const idleLooksMax = 15;
/** As many while a tool of the child's runs, whose bound is its own: 1,200 s. */
const idleLooksInToolMax = 40;

/** What a look at a child finds. `stale`: it stands still for too long, and its parent is not to be kept alive for it. */
export type Pulse = "moves" | "idle" | "stale";

/**
 * Tells a child that works from one that stands still, by what its clock says at each look. Whoever waits for it is
 * touched as long as it moves, and a while beyond; a stuck child leaves its parent to its own watchdog. A wait for an
 * approval has its own bound and counts as none of this.
 */
export class ChildPulse {
  #generation: number | undefined;
  #idleCount = 0;

  look(clock: Pick<ProgressClock, "snapshot" | "openWaits"> | undefined): Pulse {
    const generation = clock?.snapshot().generation;
    const kinds = (clock?.openWaits ?? []).map(({ kind }) => kind);
    const hasMoved = generation !== this.#generation || kinds.includes("approval");
    this.#generation = generation;
    this.#idleCount = hasMoved ? 0 : this.#idleCount + 1;
    if (hasMoved) return "moves";
    return this.#idleCount >= (kinds.includes("tool") ? idleLooksInToolMax : idleLooksMax) ? "stale" : "idle";
  }
}
