/**
 * The watch over one turn: it tells a slow turn from a stuck one and stops only the stuck one.
 *
 * Owns LIVE-1: a turn without progress for its bound is stopped within two polls while the loop runs.
 * Owns LIVE-2: a turn that progresses is never aborted, whatever clocks and schedules do.
 * Owns LIVE-3: nothing says "aborted" or stops the lease before the claim is consumed; a vetoed abort leaves no trace
 * but the observation.
 *
 * (LIVE-4, the same in a blocked loop, will be the sentinel thread's; it will read the clock's generation.)
 *
 * It decides nothing alone: the claim comes from the progress clock, is consumed where the interrupt is published, and
 * any progress in between voids it. It leaves the order of a stop to interrupt and the lease to turn-lease, which
 * learns from `clock.hasEvidence` whether renewals are earned and from `withdraw` that they are over.
 *
 * One look, each step only if the one before found nothing against it:
 *
 *   gap since the last look? ─▶ excuse it, re-read the lease, judge nobody (never twice running)
 *   silent for the bound?    ─▶ a poll phase later still? ─▶ observe (once a generation) ─▶ reserve ─▶ commit
 *   commit answered true     ─▶ settle (say "aborted") ─▶ withdraw ─▶ over
 *   anything else            ─▶ the turn goes on, and so does the watch
 */
import { CodedError, faultReporter, messageOf } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { PeriodicHandle, PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { FaultReporter, TurnLivenessErrorCode } from "./errors.ts";
import type { AbortClaim, ProgressClock } from "./progress-clock.ts";
import { createSamplingGaps } from "./sampling-gap.ts";
import type { SamplingGaps } from "./sampling-gap.ts";
import { checkSettings } from "./settings.ts";
import type { TurnLivenessSettings } from "./settings.ts";
import type { StallObservation, WatchedTurn } from "./watched-turn.ts";

export interface WatchTurnDependencies {
  readonly clock: ProgressClock;
  readonly scheduler: Pick<PeriodicScheduler, "schedule">;
  readonly host: Host;
  /** Takes what a callback threw and that an abort keeps failing. Default: a process warning. */
  readonly onFault?: FaultReporter;
}

export interface WatchHandle {
  /**
   * Ends the watch: no look begins any more, an abort that is not published yet is vetoed, and the answer of one that is
   * published is waited for, a second at most. After it resolves nothing is called. Safe to repeat.
   */
  stop(): Promise<void>;
}

/** What a look is waiting for. */
interface Wait {
  /** Whether what is waited for has had its effect already: then the end of the watch does not cut it short. */
  hasActed(): boolean;
  end(): void;
}

/** A lease is one row: a store that takes longer has no say in this look. */
const leaseAnswerMs = 10_000;
/** An interrupt answers within seconds; a commit that has not by then counts as failed, and its claim is reserved anew. */
const commitAnswerMs = 30_000;
const stopWaitMs = 1000;
/** From this many failures on an abort is not unlucky but broken. */
const failuresReported = 3;

class TurnWatch implements WatchHandle {
  readonly #clock: ProgressClock;
  readonly #host: Host;
  readonly #settings: TurnLivenessSettings;
  readonly #turn: WatchedTurn;
  readonly #report: FaultReporter;
  readonly #gaps: SamplingGaps;
  readonly #task: PeriodicHandle;
  #state: "watching" | "over" | "closed" = "watching";
  #wasPutOff = false;
  #observed: StallObservation | undefined;
  #failureCount = 0;
  #wait: Wait | undefined;

  constructor(dependencies: WatchTurnDependencies, settings: TurnLivenessSettings, turn: WatchedTurn) {
    this.#clock = dependencies.clock;
    this.#host = dependencies.host;
    this.#settings = settings;
    this.#turn = turn;
    this.#report = faultReporter(dependencies.onFault);
    this.#gaps = createSamplingGaps(this.#host.clock, settings.pollMs);
    // The silence before the turn is not the turn's: it counts from here.
    this.#clock.progress("start");
    this.#clock.snapshot();
    this.#task = dependencies.scheduler.schedule(() => this.#look(), settings.pollMs, {
      name: `turn-liveness ${turn.name}`,
    });
  }

  async stop(): Promise<void> {
    if (this.#state === "watching") this.#state = "over";
    // A stop that was published is waited for, so that "aborted" is still said.
    if (!this.#wait?.hasActed()) this.#wait?.end();
    await this.#task.cancel({ waitMs: stopWaitMs });
    this.#state = "closed";
    this.#wait?.end();
  }

  /** One run of the periodic task; false ends it. */
  async #look(): Promise<boolean> {
    this.#noteResume();
    this.#wasPutOff = await this.#judge();
    this.#noteResume();
    this.#gaps.plan(this.#settings.pollMs);
    return this.#isWatching();
  }

  /** Comes to a verdict, or finds that there is none to come to; true when it was put off because of a gap. */
  async #judge(): Promise<boolean> {
    const { timeoutMs } = this.#settings;
    if (await this.#mustPutOff()) return true;
    if (!this.#isWatching() || this.#clock.hasEvidence(timeoutMs)) return false;
    const { generation } = this.#clock.snapshot();
    // A timer that is late runs before the data that is late: let the poll phase deliver it first.
    this.#gaps.plan(0);
    await this.#until((end) => this.#host.timers.afterPoll(end));
    if (await this.#mustPutOff()) return true;
    const observation: StallObservation = Object.freeze({
      ...this.#clock.snapshot(),
      name: this.#turn.name,
      timeoutMs,
    });
    // What moved in that poll phase may already look old: its callback may have kept the loop busy since.
    if (!this.#isWatching() || observation.generation !== generation || this.#clock.hasEvidence(timeoutMs))
      return false;
    this.#observe(observation);
    // The callback may have ended the watch or moved the turn.
    const claim = this.#isWatching() ? this.#clock.reserve(observation) : undefined;
    if (claim) await this.#commit(claim, observation);
    return false;
  }

  /** After a gap progress may wait undelivered: excuse the gap and give the turn one sampling period to show it. */
  async #mustPutOff(): Promise<boolean> {
    const gap = this.#gaps.find();
    if (gap === undefined) return false;
    this.#clock.excuse(gap.lateMs);
    const isOurs = await this.#confirmLease();
    // A process that is late at every look must still be judged some time; what was late is excused anyway.
    return !isOurs || !this.#wasPutOff;
  }

  #observe(observation: StallObservation): void {
    if (this.#observed?.generation === observation.generation) return;
    this.#observed = observation;
    this.#failureCount = 0;
    this.#call("onStall", () => this.#turn.onStall(observation));
  }

  #noteResume(): void {
    if (!this.#isWatching() || this.#observed === undefined) return;
    if (this.#observed.generation === this.#clock.snapshot().generation) return;
    this.#observed = undefined;
    this.#call("onResume", () => this.#turn.onResume?.());
  }

  async #commit(reserved: AbortClaim, observation: StallObservation): Promise<void> {
    let isAwaited = true;
    let isConsumed = false;
    const claim: AbortClaim = {
      consume: () => {
        // Nobody would say "aborted" for a stop that is published after the watch has turned away.
        if (!isAwaited || !this.#isWatching() || !reserved.consume()) return false;
        isConsumed = true;
        return true;
      },
    };
    const commit = async (): Promise<void> => {
      try {
        if (await this.#turn.commitAbort(claim, observation)) this.#settle(observation);
      } catch (error) {
        this.#countFailure(error);
      }
    };
    const isAnswered = await this.#within(commitAnswerMs, commit(), () => isConsumed);
    isAwaited = false;
    if (!isAnswered) this.#countFailure(new Error(`no answer within ${commitAnswerMs / 1000} s`));
  }

  /** The one place that says "aborted"; also when the stop that it tells of has already ended the watch. */
  #settle(observation: StallObservation): void {
    if (this.#state === "closed") return;
    this.#state = "over";
    this.#call("onAborted", () => this.#turn.onAborted(observation));
    this.#call("withdraw", () => this.#turn.withdraw?.());
  }

  #countFailure(error: unknown): void {
    if (!this.#isWatching() || ++this.#failureCount !== failuresReported) return;
    const { name } = this.#turn;
    const message = `The turn ${name} is stalled and its abort has failed ${failuresReported} times (last: ${messageOf(error)}). It is left running and watched on; stop it by hand.`;
    this.#report(
      new CodedError<TurnLivenessErrorCode>("ABORT_FAILING", message, {
        cause: error,
        context: { name, count: failuresReported },
      }),
    );
  }

  async #confirmLease(): Promise<boolean> {
    const { name } = this.#turn;
    let isOurs = false;
    const confirm = async (): Promise<void> => {
      try {
        isOurs = (await this.#turn.confirmLease?.()) ?? true;
      } catch (error) {
        const message = `The lease of turn ${name} could not be confirmed after a gap (${messageOf(error)}). Nobody was judged on this look.`;
        this.#report(
          new CodedError<TurnLivenessErrorCode>("LEASE_UNCONFIRMED", message, { cause: error, context: { name } }),
        );
      }
    };
    return (await this.#within(leaseAnswerMs, confirm())) && isOurs;
  }

  /** Whether `work` settled within `boundMs` and before the watch was stopped. */
  async #within(boundMs: number, work: Promise<void>, hasActed?: () => boolean): Promise<boolean> {
    let isSettled = false;
    await this.#until((end) => {
      void work.then(() => {
        isSettled = true;
        end();
      });
      return this.#host.timers.after(boundMs, end);
    }, hasActed);
    return isSettled;
  }

  /** Waits until `arm`'s callback is called, or until the watch is stopped; nothing stays armed. */
  async #until(arm: (end: () => void) => () => void, hasActed: () => boolean = () => false): Promise<void> {
    let disarm = (): void => {};
    await new Promise<void>((resolve) => {
      this.#wait = { hasActed, end: resolve };
      disarm = arm(resolve);
    });
    this.#wait = undefined;
    disarm();
  }

  #isWatching(): boolean {
    return this.#state === "watching";
  }

  #call(callback: string, body: () => void): void {
    try {
      body();
    } catch (error) {
      const message = `${callback} of the watch over turn ${this.#turn.name} threw: ${messageOf(error)}. The watch went on.`;
      this.#report(
        new CodedError<TurnLivenessErrorCode>("CALLBACK_FAILED", message, { cause: error, context: { callback } }),
      );
    }
  }
}

/**
 * Watches one turn until it is stopped, by its end or by a stall. Keeps LIVE-1 to LIVE-3.
 *
 * `settings` of `off` watch nothing and arm nothing. One watch a clock. Throws `OPTION_INVALID`.
 */
export function watchTurn(
  dependencies: WatchTurnDependencies,
  settings: TurnLivenessSettings | "off",
  turn: WatchedTurn,
): WatchHandle {
  if (settings === "off") return { stop: () => Promise.resolve() };
  return new TurnWatch(dependencies, checkSettings(settings), turn);
}
