import type { Clock, Host } from "@turnkeeper/kernel";
import { createDeclaredWaits } from "./declared-waits.ts";
import type { DeclaredWaits, OpenWait, WaitDeclaration } from "./declared-waits.ts";

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
  /**
   * Takes time in which nothing could have moved off the silence: a gap in which the process could not run (the watch
   * says so), or a pause that a provider asked for. Is no progress, so what is repeated must be bounded elsewhere.
   */
  excuse(gapMs: number): void;
}

const describedLength = 120;

function describe(kind: string, detail: string | undefined): string {
  const text = detail === undefined ? kind : `${kind}: ${detail}`;
  return text.length <= describedLength ? text : `${text.slice(0, describedLength - 1)}…`;
}

class TurnProgressClock implements ProgressClock {
  readonly #clock: Clock;
  readonly #waits: DeclaredWaits = createDeclaredWaits();
  // The seam for the sentinel thread (LIVE-4): only `progress` writes this counter and only equality is ever asked of
  // it, so it can become a cell of shared memory.
  #generation = 0;
  #kind = "start";
  #detail: string | undefined;
  #reserved: AbortClaim | undefined;
  #seenGeneration = 0;
  #seenAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#seenAtMs = clock.monotonicMs();
  }

  // Three stores and no more. (An object literal with a getter in it made this call twice as slow.)
  progress(kind: string, detail?: string): void {
    this.#generation += 1;
    this.#kind = kind;
    this.#detail = detail;
  }

  snapshot(): ProgressSnapshot {
    const idleMs = this.#see() - this.#seenAtMs;
    const [generation, kind, detail] = [this.#generation, this.#kind, this.#detail];
    const lastProgress = describe(kind, detail);
    return {
      generation,
      kind,
      ...(detail === undefined ? {} : { detail }),
      lastProgress,
      idleMs,
      openWaits: this.openWaits,
    };
  }

  reserve({ generation }: ProgressSnapshot): AbortClaim | undefined {
    if (generation !== this.#generation || this.#isWaiting()) return undefined;
    const claim: AbortClaim = {
      consume: () => {
        // Progress voids the claim by moving the generation on: it costs `progress` nothing.
        if (this.#reserved !== claim || this.#generation !== generation) return false;
        this.#reserved = undefined;
        return true;
      },
    };
    this.#reserved = claim;
    return claim;
  }

  declareWait(declaration: WaitDeclaration): Disposable {
    const wait = this.#waits.declare(declaration, this.#see());
    if (this.#isWaiting()) this.#reserved = undefined;
    return wait;
  }

  get openWaits(): readonly OpenWait[] {
    const nowMs = this.#see();
    return this.#waits.views(nowMs, this.#seenAtMs);
  }

  hasEvidence(timeoutMs: number): boolean {
    return this.#see() - this.#seenAtMs < timeoutMs || this.#isWaiting();
  }

  excuse(gapMs: number): void {
    const nowMs = this.#see();
    this.#seenAtMs = Math.min(nowMs, this.#seenAtMs + gapMs);
    this.#waits.excuse(gapMs, nowMs);
  }

  #isWaiting(): boolean {
    const nowMs = this.#see();
    return this.#waits.hold(nowMs, this.#seenAtMs);
  }

  /** Stamps progress that nobody had looked at yet: late by one poll at most, never early. Answers the time. */
  #see(): number {
    const nowMs = this.#clock.monotonicMs();
    if (this.#seenGeneration !== this.#generation) {
      this.#seenGeneration = this.#generation;
      this.#seenAtMs = nowMs;
      this.#waits.onProgressSeen();
    }
    return nowMs;
  }
}

/** Makes the clock of one turn. Holds no timer and nothing to close. */
export function createProgressClock(dependencies: { readonly host: Host }): ProgressClock {
  return new TurnProgressClock(dependencies.host.clock);
}
