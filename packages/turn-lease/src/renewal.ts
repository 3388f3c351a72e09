/**
 * What a holder does to keep its grant, and when it stops believing in it.
 *
 * Owns LEASE-3: a holder that cannot renew stops believing before the store would grant anew.
 *
 * Belief ends at TTL less margin on the holder's own boot clock, counted from before the last successful request was
 * sent. A failed renewal is not a loss: the row is read back and the renewal repeated at every look, until belief ends.
 * A row that names another grant is a loss at once. Whoever was stopped or slept beyond the end of belief asks the
 * store once more before it gives up, and does nothing in between: its row may still be its own.
 *
 *   phase    event                                        next     effect
 *   held     renewed                                      held     belief counts from the sending of this request
 *   held     renewal failed, row read back as ours        held     repeated at the next look
 *   held     no evidence of progress                      held     nothing is written, the row is looked at
 *   held     the row names another, or none               lost     `lost` aborts: replaced
 *   held     belief ends while renewals fail              lost     `lost` aborts: unconfirmed
 *   held     belief ends while renewals are withheld      lost     `lost` aborts: withheld
 *   held     stop                                         stopped  no timer is left; belief runs out by itself
 *   any but held: a late answer of the store changes nothing
 */
import type { Cancel, CodedError, Host } from "@turnkeeper/kernel";
import type { PeriodicHandle, PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { Grant, LeaseStore, LeaseView } from "@turnkeeper/state-store";
import { Belief, instantOf } from "./belief.ts";
import type { Instant } from "./belief.ts";
import { leaseLost } from "./errors.ts";
import type { LossFacts } from "./errors.ts";
import type { ResolvedTurnLeaseOptions } from "./options.ts";
import { Pauses } from "./pauses.ts";

export interface RenewalDeps {
  readonly store: Pick<LeaseStore, "renew" | "read">;
  readonly scheduler: Pick<PeriodicScheduler, "schedule">;
  readonly host: Host;
}

/** How often a holder looks at its clocks: a machine that woke up is noticed within this, and a failed renewal repeated. */
const lookEveryMs = 1_000;

export class Renewal {
  readonly #store: RenewalDeps["store"];
  readonly #host: Host;
  readonly #grant: Grant;
  readonly #options: ResolvedTurnLeaseOptions;
  readonly #belief: Belief;
  readonly #pauses: Pauses;
  readonly #task: PeriodicHandle;
  readonly #lookMs: number;
  readonly #loss = new AbortController();
  #phase: "held" | "stopped" | "lost" = "held";
  #disarm: Cancel = () => {};
  #attempt: Promise<boolean> | undefined;
  #deciding: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;

  /** `sent` is the instant before the request that was granted. */
  constructor(deps: RenewalDeps, grant: Grant, options: ResolvedTurnLeaseOptions, sent: Instant) {
    this.#store = deps.store;
    this.#host = deps.host;
    this.#grant = grant;
    this.#options = options;
    this.#belief = new Belief(deps.host.clock, options.ttlMs, options.marginMs, sent);
    this.#pauses = new Pauses(deps.host.timers);
    this.#lookMs = Math.min(options.renewEveryMs, lookEveryMs);
    this.#task = deps.scheduler.schedule(this.#look, this.#lookMs, { name: `renewal of session ${grant.sessionId}` });
    this.#armEnd();
  }

  /** Aborts when the lease is lost, with that error as its reason. */
  get lost(): AbortSignal {
    return this.#loss.signal;
  }

  /** Whether `lost` has aborted, or would have: the signal itself is made for whoever listens to it. */
  get isLost(): boolean {
    return this.#phase === "lost";
  }

  /** Resolves while the lease is held, after a renewal where its age or a sleep asks for one; else throws `LEASE_LOST`. */
  async confirm(): Promise<void> {
    for (;;) {
      this.#loss.signal.throwIfAborted();
      const { endsInMs, hasSlept } = this.#belief.look();
      if (endsInMs > 0 && (!hasSlept || this.#phase === "stopped")) return;
      if (this.#phase === "stopped") throw this.#lossOf({ cause: "unconfirmed" });
      if (endsInMs <= 0) await this.#decide(true);
      else if (!(await this.#renewed())) await this.#pauses.pause(this.#lookMs);
    }
  }

  /** Ends all renewing; afterwards nothing that arrives late has an effect. Safe to repeat. */
  stop(): void {
    if (this.#phase !== "held") return;
    this.#phase = "stopped";
    this.#end();
  }

  #end(): void {
    this.#disarm();
    this.#pauses.endAll();
    void this.#task.cancel();
  }

  #lossOf(facts: LossFacts): CodedError<"LEASE_LOST"> {
    return leaseLost(this.#grant, this.#failure ? { failure: this.#failure.error, ...facts } : facts);
  }

  #lose(facts: LossFacts): void {
    if (this.#phase !== "held") return;
    this.#phase = "lost";
    this.#end();
    this.#loss.abort(this.#lossOf(facts));
  }

  /** Wakes up when belief ends. A timer that saw less time than the boot clock is corrected by the looks. */
  #armEnd(delayMs: number = this.#belief.timerMs): void {
    this.#disarm();
    const onEnd = (): void => {
      const { endsInMs } = this.#belief.look();
      if (endsInMs > 0) this.#armEnd(endsInMs);
      else void this.#decide(false);
    };
    this.#disarm = this.#host.timers.after(delayMs, onEnd, { keepAlive: false });
  }

  readonly #look = async (): Promise<boolean> => {
    if (this.#phase !== "held") return false;
    const { endsInMs, hasSlept, ageMs } = this.#belief.look();
    // Looks come at intervals: the one nearest to the due time renews.
    const isDue = hasSlept || ageMs >= this.#options.renewEveryMs - this.#lookMs / 2;
    if (endsInMs <= 0) await this.#decide(false);
    else if (isDue && !this.#options.mayRenew()) await this.#readBack();
    else if (isDue) await this.#renew();
    return this.#phase === "held";
  };

  /** Renews once, together with whoever asks at the same time. Answers whether the store did. */
  #renew(): Promise<boolean> {
    this.#attempt ??= this.#ask().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #ask(): Promise<boolean> {
    const sent = instantOf(this.#host.clock);
    try {
      const answer = await this.#store.renew(this.#grant, this.#options.ttlMs);
      if (this.#phase !== "held") return false;
      if (answer.kind === "lost") {
        this.#replacedBy(answer.lease);
        return false;
      }
      this.#failure = undefined;
      this.#belief.confirm(sent);
      this.#armEnd();
      return true;
    } catch (error) {
      if (this.#phase !== "held") return false;
      // Busy, an I/O error, an outcome nobody knows: not a loss. What the row says decides, and a repetition.
      this.#failure = { error };
      await this.#readBack();
      return false;
    }
  }

  /** Looks whose the row is, without writing. */
  async #readBack(): Promise<void> {
    try {
      const row = await this.#store.read(this.#grant.sessionId);
      if (row?.holder.holderId !== this.#grant.holderId || row.fencingToken !== this.#grant.fencingToken)
        this.#replacedBy(row);
    } catch {
      // A store that cannot be read says nothing about the lease; the end of belief is the bound.
    }
  }

  #replacedBy(row: LeaseView | undefined): void {
    this.#lose({ cause: "replaced", ...(row ? { holder: row.holder } : {}) });
  }

  /** As `#renew`, but a store that does not answer keeps nobody beyond the loss or the stop. */
  async #renewed(): Promise<boolean> {
    const attempt = this.#renew();
    await this.#pauses.until(attempt, Math.max(0, this.#belief.look().endsInMs));
    const { endsInMs, hasSlept } = this.#belief.look();
    return this.#phase === "held" && endsInMs > 0 && !hasSlept;
  }

  /** Belief has ended: decides, once for all who ask, whether the lease is lost. */
  #decide(isAsked: boolean): Promise<void> {
    this.#deciding ??= this.#decided(isAsked).finally(() => {
      this.#deciding = undefined;
    });
    return this.#deciding;
  }

  get #isUndecided(): boolean {
    return this.#phase === "held" && this.#belief.look().endsInMs <= 0;
  }

  async #decided(isAsked: boolean): Promise<void> {
    // The answer to a renewal may be waiting in a loop that was blocked.
    await this.#pauses.afterPoll();
    if (!this.#isUndecided) return;
    const { marginMs } = this.#options;
    const leftMs = marginMs + this.#belief.look().endsInMs;
    const wasTrying = this.#attempt !== undefined || this.#failure !== undefined;
    // In time, and the store had its chances: over. Beyond the TTL this process stood still, and has yet to ask.
    if (leftMs > 0 && wasTrying) return this.#lose({ cause: "unconfirmed" });
    if (!isAsked && !this.#hasEvidence()) return this.#lose({ cause: "withheld" });
    await this.#tryFor(leftMs > 0 ? leftMs / 2 : marginMs);
    if (this.#isUndecided) this.#lose({ cause: "unconfirmed" });
  }

  #hasEvidence(): boolean {
    try {
      return this.#options.mayRenew();
    } catch {
      // Evidence that cannot be read is none. Each look reports the same failure through the scheduler.
      return false;
    }
  }

  async #tryFor(graceMs: number): Promise<void> {
    const { clock } = this.#host;
    const untilMs = clock.monotonicMs() + graceMs;
    while (this.#isUndecided) {
      const attempt = this.#renew();
      await this.#pauses.until(attempt, Math.max(0, untilMs - clock.monotonicMs()));
      const restMs = untilMs - clock.monotonicMs();
      if (restMs <= 0 || !this.#isUndecided) return;
      await this.#pauses.pause(Math.min(restMs, this.#lookMs));
    }
  }
}
