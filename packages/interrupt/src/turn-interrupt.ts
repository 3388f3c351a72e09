/**
 * Everything that can stop a turn ends here: one interrupt, made fresh for each turn, gone with it.
 *
 * Owns INT-1: claim and first publication are one step: progress first, nothing is published; publication first, later
 * progress undoes nothing.
 * Owns INT-2: an interrupt for one turn never touches another; after it is observed no further tool starts.
 * Owns INT-3: a watchdog interrupt that throws publishes nothing; a lease loss always stops the turn.
 *
 * A stop with a claim (a watchdog's) is vetoed by progress at any moment before it is published, and leaves no trace
 * then. One without (a user's, a lost lease's) cannot be vetoed: it is published within the call; where it is hard and
 * a commit is in flight, its soft half at once and its hard half when the commit is over or `commitWaitMs` has passed.
 *
 * It leaves the judgement on progress to turn-liveness, what a commit is to compression-fence, and to agent-core that
 * every loop asks before a model call or a tool (`enterPhase`, `signal.throwIfAborted`) and that tools are killed.
 *
 * | state         | soft                | hard, no commit in flight | hard, with one      | with a claim, at the end of its wait |
 * | ------------- | ------------------- | ------------------------- | ------------------- | ------------------------------------ |
 * | running       | stopped, soft       | stopped, hard             | hardening           | as asked, if the claim is whole      |
 * | stopped, soft | already-interrupted | stopped, hard             | hardening           | hard, if the claim is whole          |
 * | hardening     | already-interrupted | already-interrupted       | already-interrupted | already-interrupted, unconsumed      |
 * | stopped, hard | already-interrupted | already-interrupted       | already-interrupted | already-interrupted, unconsumed      |
 * | finished      | already-finished    | already-finished          | already-finished    | already-finished, unconsumed         |
 */
import { CodedError, faultReporter, messageOf } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { AbortClaim } from "./abort-claim.ts";
import { createCommitWaits } from "./commit-barrier.ts";
import type { CommitBarrier, CommitWaits } from "./commit-barrier.ts";
import type { FaultReporter, InterruptErrorCode } from "./errors.ts";
import { createGuardedSignal } from "./guarded-signal.ts";
import type { GuardedSignal } from "./guarded-signal.ts";
import { interruptedError, recordOf } from "./interrupt-record.ts";
import type { InterruptOrigin, InterruptOutcome, InterruptRecord, InterruptRequest } from "./interrupt-record.ts";
import { resolveTurnInterruptOptions } from "./options.ts";
import type { ResolvedTurnInterruptOptions, TurnInterruptOptions } from "./options.ts";
import { createSteerQueue } from "./steer-queue.ts";
import type { SteerBatch, SteerQueue } from "./steer-queue.ts";
import { createTurnPhases, redirectedError } from "./turn-phase.ts";
import type { TurnPhase, TurnPhaseKind, TurnPhases } from "./turn-phase.ts";
import { standingOf } from "./turn-state.ts";
import type { TurnState } from "./turn-state.ts";

export interface TurnInterruptDependencies {
  readonly host: Host;
  /** The fence of the turn's compactions; a hard stop waits for its commit and cancels what has not begun. */
  readonly commitBarrier?: CommitBarrier;
  /** Takes what a listener or the barrier threw. Default: a process warning. */
  readonly onFault?: FaultReporter;
}

/** `redirected`: the model request was cut short. `steered`: tools run; they were asked to yield. `refused`: queue a new turn. */
export type RedirectOutcome = "redirected" | "steered" | "refused";

export interface TurnInterrupt {
  /** Aborts on any stop, soft or hard; its reason is a `CodedError` with code `INTERRUPTED`. Always before `hardSignal`. */
  readonly signal: AbortSignal;
  /** Aborts on a hard stop. */
  readonly hardSignal: AbortSignal;
  /** What stopped the turn, for as long as the turn is remembered. */
  readonly current: InterruptRecord | undefined;
  /**
   * Asks this turn, and no other, to stop. Keeps INT-1 to INT-3.
   *
   * Without a claim it never rejects and publishes within the call. With one it answers within `commitWaitMs`, and
   * rejects with what the claim or the barrier threw: nothing was published then. Safe to repeat and to race.
   */
  interrupt(request: InterruptRequest): Promise<InterruptOutcome>;
  /** Queues live text for the next model request. False for blank text or a turn that is stopped: queue a new turn. */
  steer(text: string): boolean;
  /** The steers that wait, as one batch; `undefined` when none do or after a hard stop. */
  takeSteers(): SteerBatch | undefined;
  /** Steers now: cuts a running model request short, asks running tools to yield; touches neither tools nor children. */
  redirect(text: string): RedirectOutcome;
  /** Enters a model request or a batch of tools. Throws `INTERRUPTED` once the turn is stopped: nothing starts then. */
  enterPhase(kind: TurnPhaseKind): TurnPhase;
  /** The interrupt of a child turn: a hard stop goes down to it with its reason, a soft one only if it came first. */
  child(dependencies?: Pick<TurnInterruptDependencies, "commitBarrier">): TurnInterrupt;
  /**
   * The turn has ended: waits end, parent and children are let go, later stops answer `already-finished`. Returns the
   * steers that were never delivered. Safe to repeat; a second call returns none.
   */
  finish(): readonly string[];
}

interface Wiring {
  readonly host: Host;
  readonly report: FaultReporter;
  readonly options: ResolvedTurnInterruptOptions;
}

class Turn implements TurnInterrupt {
  readonly #wiring: Wiring;
  readonly #barrier: CommitBarrier | undefined;
  readonly #leaveParent: () => void;
  readonly #stop: GuardedSignal;
  readonly #hardStop: GuardedSignal;
  readonly #waits: CommitWaits;
  readonly #phases: TurnPhases;
  readonly #steers: SteerQueue = createSteerQueue();
  readonly #children = new Set<Turn>();
  #state: TurnState = { kind: "running" };

  constructor(wiring: Wiring, barrier: CommitBarrier | undefined, leaveParent: () => void) {
    this.#wiring = wiring;
    this.#barrier = barrier;
    this.#leaveParent = leaveParent;
    this.#stop = createGuardedSignal("signal", wiring.report);
    this.#hardStop = createGuardedSignal("hardSignal", wiring.report);
    this.#waits = createCommitWaits(wiring.host.timers);
    this.#phases = createTurnPhases(wiring.report);
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get hardSignal(): AbortSignal {
    return this.#hardStop.signal;
  }

  get current(): InterruptRecord | undefined {
    return this.#state.kind === "running" ? undefined : this.#state.record;
  }

  async interrupt(request: InterruptRequest): Promise<InterruptOutcome> {
    return request.claim === undefined
      ? this.#stopAtOnce(request, false)
      : this.#stopUnlessVetoed(request, request.claim);
  }

  steer(text: string): boolean {
    if (this.#state.kind !== "running" || text.trim() === "") return false;
    this.#steers.add(text);
    return true;
  }

  takeSteers(): SteerBatch | undefined {
    return this.#steers.take();
  }

  redirect(text: string): RedirectOutcome {
    const kind = this.#phases.has("model-request") ? "model-request" : "tools";
    if (!this.#phases.has(kind) || !this.steer(text)) return "refused";
    this.#phases.abort(kind, redirectedError());
    return kind === "model-request" ? "redirected" : "steered";
  }

  enterPhase(kind: TurnPhaseKind): TurnPhase {
    const { current } = this;
    if (current) throw interruptedError(current);
    if (this.#state.kind === "finished") {
      throw new CodedError<InterruptErrorCode>(
        "TURN_FINISHED",
        `A ${kind} phase was entered after its turn had finished. Begin a new turn.`,
      );
    }
    return this.#phases.enter(kind);
  }

  child(dependencies: Pick<TurnInterruptDependencies, "commitBarrier"> = {}): TurnInterrupt {
    const child: Turn = new Turn(this.#wiring, dependencies.commitBarrier, () => this.#children.delete(child));
    const { current } = this;
    if (this.#state.kind === "finished") {
      // Nobody would pass a stop on to it any more.
      child.#inherit({
        ...current,
        hard: true,
        reason: current?.reason ?? "parent",
        message: current?.message ?? "Its parent turn had finished.",
      });
      return child;
    }
    this.#children.add(child);
    if (current) child.#inherit(current);
    return child;
  }

  finish(): readonly string[] {
    this.#state = { kind: "finished", record: this.current };
    this.#waits.endAll();
    this.#children.clear();
    this.#leaveParent();
    return this.#steers.end();
  }

  async #stopUnlessVetoed(request: InterruptRequest, claim: AbortClaim): Promise<InterruptOutcome> {
    if (standingOf(this.#state, request.hard) === undefined && request.hard && this.#barrier?.commitInFlight) {
      await this.#waits.wait(this.#barrier, this.#wiring.options.commitWaitMs);
    }
    return this.#consumeAndPublish(request, claim);
  }

  /** INT-1. Synchronous from the last check to the publication: an `await` in here would let progress slip between. */
  #consumeAndPublish(request: InterruptRequest, claim: AbortClaim): InterruptOutcome {
    const standing = standingOf(this.#state, request.hard);
    if (standing) return standing;
    if (!claim.consume()) return "vetoed";
    this.#publish(request, { fromParent: false, earlier: this.current });
    return "published";
  }

  async #stopAtOnce(request: InterruptRequest, fromParent: boolean): Promise<InterruptOutcome> {
    const standing = standingOf(this.#state, request.hard);
    if (standing) return standing;
    const origin: InterruptOrigin = { fromParent, earlier: this.current };
    const barrier = request.hard ? this.#barrierInFlight() : undefined;
    if (barrier === undefined) {
      this.#publish(request, origin);
      return "published";
    }
    // Nothing can veto this stop, so its soft half does not wait: no model call and no tool starts from here on.
    if (origin.earlier) this.#state = { kind: "hardening", record: origin.earlier };
    else this.#publish({ ...request, hard: false }, origin, "hardening");
    await this.#waitForCommit(barrier);
    if (this.#isHardening()) {
      this.#publish(request, origin);
      return "published";
    }
    return origin.earlier ? "already-finished" : "published";
  }

  async #waitForCommit(barrier: CommitBarrier): Promise<void> {
    // A listener of the soft half may have finished the turn.
    if (!this.#isHardening()) return;
    try {
      await this.#waits.wait(barrier, this.#wiring.options.commitWaitMs);
    } catch (error) {
      this.#reportBarrier(error);
    }
  }

  #isHardening(): boolean {
    return this.#state.kind === "hardening";
  }

  #inherit(record: InterruptRequest): void {
    void this.#stopAtOnce(record, true);
  }

  #publish(request: InterruptRequest, origin: InterruptOrigin, kind: "stopped" | "hardening" = "stopped"): void {
    const record = recordOf(request, origin, this.#wiring.host.clock.wallMs());
    const reason = interruptedError(record);
    // A listener may finish the turn; the stop it is told of still goes down.
    const children = [...this.#children];
    this.#state = { kind, record };
    this.#stop.abort(reason);
    this.#phases.abort("model-request", reason);
    this.#phases.abort("tools", reason);
    if (!record.hard) return;
    this.#steers.close();
    this.#hardStop.abort(reason);
    this.#cancelPendingCommit();
    for (const child of children) child.#inherit(record);
  }

  /** The barrier to wait for; a broken one does not hold up a stop that nothing may veto. */
  #barrierInFlight(): CommitBarrier | undefined {
    try {
      return this.#barrier?.commitInFlight ? this.#barrier : undefined;
    } catch (error) {
      this.#reportBarrier(error);
      return undefined;
    }
  }

  /** Behind the publication, never on the way to it; a commit that has begun meanwhile owns itself. */
  #cancelPendingCommit(): void {
    try {
      if (this.#barrier && !this.#barrier.commitInFlight) this.#barrier.cancelPending();
    } catch (error) {
      this.#reportBarrier(error);
    }
  }

  #reportBarrier(error: unknown): void {
    const what = messageOf(error);
    const message = `The commit barrier of a turn that was being stopped failed: ${what}. The stop went on without it.`;
    this.#wiring.report(new CodedError<InterruptErrorCode>("BARRIER_FAILED", message, { cause: error }));
  }
}

/** Makes the interrupt of one turn. Throws `OPTION_INVALID`. Make a new one for every turn; none outlives its own. */
export function createTurnInterrupt(
  dependencies: TurnInterruptDependencies,
  options: TurnInterruptOptions = {},
): TurnInterrupt {
  const wiring: Wiring = {
    host: dependencies.host,
    report: faultReporter(dependencies.onFault),
    options: resolveTurnInterruptOptions(options),
  };
  return new Turn(wiring, dependencies.commitBarrier, () => {});
}
