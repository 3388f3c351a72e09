import type { Host } from "@turnkeeper/kernel";
import { createDeclaredWaits } from "./declared-waits.ts";
import type { OpenWait, WaitDeclaration } from "./declared-waits.ts";

/** The right to stop a turn that makes no progress; any progress after it was reserved voids it. */
export interface AbortClaim {
  /** Takes the right: true once, and only if nothing has voided it. Call it in the same step as what it permits. */
  consume(): boolean;
}

/** What was known of a turn's progress at one moment. */
export interface ProgressSnapshot {
  /** Counts progress. Two snapshots with the same number: nothing moved between them. */
  readonly generation: number;
  readonly kind: string;
  readonly detail?: string;
  /** `kind` and `detail` for people, at most 120 characters. */
  readonly lastProgress: string;
  /** Milliseconds since the last progress was first seen: short of the truth by at most one poll. */
  readonly idleMs: number;
  readonly openWaits: readonly OpenWait[];
}

/** The progress of one turn. One writer or many, one watch. */
export interface ProgressClock {
  /**
   * Says that the turn moved: a model delta with content, a tool's start, end or declared heartbeat, an approval, a
   * child's end. Not bytes, keep-alives, retries, renewals or polls. Reads no clock: call it for every delta.
   */
  progress(kind: string, detail?: string): void;
  snapshot(): ProgressSnapshot;
  /** The right to stop this turn for the silence of `snapshot`; `undefined` when it has moved or waits since. */
  reserve(snapshot: ProgressSnapshot): AbortClaim | undefined;
  /**
   * Announces a silence; dispose it when the wait is over, whatever came of it. Ends by itself at its bound. Voids a
   * claim, but is not progress: declared again without progress in between, it does not start anew. Throws
   * `OPTION_INVALID` for a bound that is not finite and above 0.
   */
  declareWait(declaration: WaitDeclaration): Disposable;
  /** Waits that have not been disposed, also those past their bound. */
  readonly openWaits: readonly OpenWait[];
  /** Whether there is reason to believe in the turn: progress within `timeoutMs`, or a declared wait inside its bound. */
  hasEvidence(timeoutMs: number): boolean;
  /** Takes a gap in which the process could not run off the silence; the watch calls it. */
  excuse(gapMs: number): void;
}

const describedLength = 120;

function describe(kind: string, detail: string | undefined): string {
  const text = detail === undefined ? kind : `${kind}: ${detail}`;
  return text.length <= describedLength ? text : `${text.slice(0, describedLength - 1)}…`;
}

/** Makes the clock of one turn. Holds no timer and nothing to close. */
export function createProgressClock(dependencies: { readonly host: Host }): ProgressClock {
  const { clock } = dependencies.host;
  const waits = createDeclaredWaits();
  // The seam for the sentinel thread (LIVE-4): only `progress` writes this counter and only equality is ever asked of
  // it, so it can become a cell of shared memory.
  let generation = 0;
  let kind = "start";
  let detail: string | undefined;
  let reserved: AbortClaim | undefined;
  let seenGeneration = generation;
  let seenAtMs = clock.monotonicMs();

  /** Stamps progress that nobody had looked at yet. The time of the look is late by one poll at most, never early. */
  const see = (): number => {
    const nowMs = clock.monotonicMs();
    if (seenGeneration !== generation) {
      seenGeneration = generation;
      seenAtMs = nowMs;
      waits.onProgressSeen();
    }
    return nowMs;
  };
  const openWaits = (): readonly OpenWait[] => waits.views(see(), seenAtMs);

  return {
    progress: (nextKind, nextDetail) => {
      generation += 1;
      kind = nextKind;
      detail = nextDetail;
      reserved = undefined;
    },
    snapshot: () => {
      const idleMs = see() - seenAtMs;
      const lastProgress = describe(kind, detail);
      return {
        generation,
        kind,
        ...(detail === undefined ? {} : { detail }),
        lastProgress,
        idleMs,
        openWaits: openWaits(),
      };
    },
    reserve: (snapshot) => {
      if (snapshot.generation !== generation || waits.hold(see(), seenAtMs)) return undefined;
      const claim: AbortClaim = {
        consume: () => {
          if (reserved !== claim) return false;
          reserved = undefined;
          return true;
        },
      };
      reserved = claim;
      return claim;
    },
    declareWait: (declaration) => {
      const wait = waits.declare(declaration, see());
      if (waits.hold(clock.monotonicMs(), seenAtMs)) reserved = undefined;
      return wait;
    },
    get openWaits() {
      return openWaits();
    },
    hasEvidence: (timeoutMs) => {
      const nowMs = see();
      return nowMs - seenAtMs < timeoutMs || waits.hold(nowMs, seenAtMs);
    },
    excuse: (gapMs) => {
      const nowMs = see();
      seenAtMs = Math.min(nowMs, seenAtMs + gapMs);
      waits.excuse(gapMs, nowMs);
    },
  };
}
