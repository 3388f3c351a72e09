import type { Cancel, Timers } from "@turnkeeper/kernel";
import type { Grant, HandOver, LeaseStore, ReleaseResult } from "@turnkeeper/state-store";
import { leaseLost } from "./errors.ts";
import { passOn } from "./hand-over.ts";
import type { HandOverDeps } from "./hand-over.ts";
import type { Renewal } from "./renewal.ts";

/** What a closing write answers: what the freed session leaves to do, or that the grant had been replaced. */
export type ClosingResult = ({ readonly kind: string } & HandOver) | { readonly kind: "stale" | "stale-token" };

/** The lease had been lost: nothing was written, and nothing was released. */
export interface LostRelease {
  readonly kind: "lost";
}

/** The right to run one session's turn, while it lasts. It keeps the process alive until it is released. */
export interface TurnLease {
  readonly sessionId: string;
  /** Names this grant in every write it protects. */
  readonly grant: Grant;
  readonly fencingToken: number;
  /** Aborts when the lease is lost, with a `LEASE_LOST` error as its reason: stop the turn. Never after `stopRenewal`. */
  readonly lost: AbortSignal;
  /**
   * Resolves while the lease is held. To be awaited before each side effect: when the TTL less its margin is over
   * since the last renewal, or the machine slept, it renews in the store first. Throws `LEASE_LOST`. Keeps LEASE-3.
   */
  confirm(): Promise<void>;
  /** The turn is over: no renewal is sent any more and `lost` stays as it is. Safe to repeat. */
  stopRenewal(): void;
  /**
   * Frees the session, with `LeaseStore.release` or with the closing write given, and wakes the head of its queue. The
   * answer is that of the write; its `head` is the waiter that was told, and is absent where only orphans are pending.
   * Skipped, and `lost`, when the lease is lost. Once it has answered, every call answers the same. When it rejects
   * nothing was concluded: call it again, or dispose.
   */
  release(): Promise<ReleaseResult | LostRelease>;
  release<Result extends ClosingResult>(write: () => Promise<Result>): Promise<Result | LostRelease>;
  /** Releases, and lets go of the lease even where the store refuses: others find it leaked and reclaim it. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface HeldLeaseDeps extends HandOverDeps {
  readonly store: Pick<LeaseStore, "release">;
  readonly timers: Timers;
}

/** Long timers are chained, so any number does. */
const keepAliveMs = 86_400_000;

/** Holds the process: a turn whose promise never settles would otherwise end it silently, with exit code 0. */
function keepProcess(timers: Timers): Cancel {
  let cancel = timers.after(keepAliveMs, arm);
  function arm(): void {
    cancel = timers.after(keepAliveMs, arm);
  }
  return () => cancel();
}

export class HeldLease implements TurnLease {
  readonly grant: Grant;
  readonly #deps: HeldLeaseDeps;
  readonly #renewal: Renewal;
  readonly #registration: Disposable;
  readonly #ttlMs: number;
  readonly #releaseProcess: Cancel;
  #disarm: Cancel = () => {};
  #isReleased = false;
  #releasing: Promise<unknown> | undefined;

  constructor(deps: HeldLeaseDeps, grant: Grant, renewal: Renewal, registration: Disposable, ttlMs: number) {
    this.#deps = deps;
    this.grant = grant;
    this.#renewal = renewal;
    this.#registration = registration;
    this.#ttlMs = ttlMs;
    this.#releaseProcess = keepProcess(deps.timers);
  }

  get sessionId(): string {
    return this.grant.sessionId;
  }

  get fencingToken(): number {
    return this.grant.fencingToken;
  }

  get lost(): AbortSignal {
    return this.#renewal.lost;
  }

  async confirm(): Promise<void> {
    if (this.#isReleased) throw leaseLost(this.grant, { cause: "released" });
    await this.#renewal.confirm();
  }

  stopRenewal(): void {
    this.#renewal.stop();
  }

  release(): Promise<ReleaseResult | LostRelease>;
  release<Result extends ClosingResult>(write: () => Promise<Result>): Promise<Result | LostRelease>;
  release(write: () => Promise<ClosingResult> = () => this.#deps.store.release(this.grant)): Promise<unknown> {
    this.#releasing ??= this.#free(write).catch((error: unknown) => {
      this.#releasing = undefined;
      throw error;
    });
    return this.#releasing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } finally {
      this.#letGo();
    }
  }

  async #free(write: () => Promise<ClosingResult>): Promise<ClosingResult | LostRelease> {
    this.#disarm();
    this.#renewal.stop();
    if (this.#renewal.isLost) {
      this.#letGo();
      return { kind: "lost" };
    }
    const result = await this.#written(write);
    this.#letGo();
    if (!("pendingCount" in result) || !result.head) return result;
    const { head: _head, ...rest } = result;
    return { ...rest, ...(await passOn(this.#deps, this.sessionId, result)) };
  }

  async #written(write: () => Promise<ClosingResult>): Promise<ClosingResult> {
    try {
      return await write();
    } catch (error) {
      // The owner knows now and decides: it may try again, so the grant stays registered, but only for as long as the
      // row may stand. The process is no longer held: whoever gives up here must be able to leave.
      this.#releaseProcess();
      this.#disarm();
      this.#disarm = this.#deps.timers.after(this.#ttlMs, () => this.#letGo(), { keepAlive: false });
      throw error;
    }
  }

  #letGo(): void {
    this.#isReleased = true;
    this.#disarm();
    this.#releaseProcess();
    this.#registration[Symbol.dispose]();
  }
}
