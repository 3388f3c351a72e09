import { CodedError } from "@turnkeeper/kernel";
import type { AcquireResult, Grant, Holder, LeaseView, StoreErrorCode, SuspendedTurn } from "@turnkeeper/state-store";
import type { TurnLeaseDeps, TurnLeaseResult } from "./acquire.ts";
import { instantOf } from "./belief.ts";
import type { Instant } from "./belief.ts";
import { Doorbell } from "./doorbell.ts";
import { passOn, wakeHead } from "./hand-over.ts";
import { HolderJudgement } from "./holder-judgement.ts";
import type { Reclaim } from "./holder-judgement.ts";
import { HeldLease } from "./lease.ts";
import type { ResolvedTurnLeaseOptions } from "./options.ts";
import { Renewal } from "./renewal.ts";
import { Waiting } from "./waiting.ts";

type Granted = Extract<AcquireResult, { kind: "granted" }>;

/** Between two questions to a store that is busy. */
const busyPauseMs = 25;
/** A store that is busy for longer than this is not busy but broken; its error is thrown. */
const busyPatienceMs = 60_000;
/**
 * Between two questions about a session whose turn waits for approval: people take seconds, whoever answers wakes the
 * process that asked, and each question is a write transaction.
 */
const suspendedPollMs = 1000;
/** How often an acquire whose outcome is unknown is repeated; under one holder id a repetition is harmless. */
const unknownOutcomesMax = 3;

/**
 * One request for a session's lease, from the first question to the store to the grant or the refusal.
 *
 *   the store answers   what follows
 *   granted             a lease; freed again where nobody wants it any more
 *   held                judged; taken if dead or leaked, else waited for: a wake-up, or a look every `pollMs`
 *   suspended           the turn waits for approval: asked again after a wake-up, or in a while; at once, for that turn,
 *                       where this process can go on with it
 *   behind              the head of the queue is woken, or taken out of it if it is gone
 *   busy                asked again soon: no refusal, no notice
 *   unknown outcome     asked again under the same holder id
 */
export class Admission {
  readonly #deps: TurnLeaseDeps;
  readonly #sessionId: string;
  readonly #options: ResolvedTurnLeaseOptions;
  readonly #holder: Holder;
  readonly #registration: Disposable;
  readonly #bell: Doorbell;
  readonly #waiting: Waiting;
  readonly #judgement: HolderJudgement;
  /** Before the first request whose outcome may be a grant. */
  #sent: Instant | undefined;
  #busySinceMs: number | undefined;
  #unknownOutcomeCount = 0;
  #isAborted = false;
  /** A turn may be beginning: then its owner has to be told, whatever else happens. */
  #mayBegin = false;
  /** The suspended turn that is to go on. */
  #resumes: string | undefined;
  #isGranted = false;

  constructor(deps: TurnLeaseDeps, sessionId: string, options: ResolvedTurnLeaseOptions) {
    const { host, presence } = deps;
    this.#deps = deps;
    this.#sessionId = sessionId;
    this.#options = options;
    this.#isAborted = options.signal?.aborted ?? false;
    this.#holder = { ...presence.identity, holderId: host.random.id() };
    this.#bell = new Doorbell(host.timers);
    this.#waiting = new Waiting(host.clock, options.onWaiting);
    this.#judgement = new HolderJudgement(presence, host.clock);
    // Before anything is sent: others may see the grant before its answer is here, and would take it for leaked.
    this.#registration = presence.register(this.#holder.holderId);
  }

  async run(): Promise<TurnLeaseResult> {
    const { signal } = this.#options;
    const wake = this.#deps.presence.onWake(this.#sessionId, this.#bell.ring);
    const seeking = this.#seek().finally(() => {
      wake[Symbol.dispose]();
      if (!this.#isGranted) this.#registration[Symbol.dispose]();
    });
    if (!signal) return await seeking;
    return await new Promise<TurnLeaseResult>((resolve, reject) => {
      const abort = (): void => {
        this.#isAborted = true;
        this.#bell.ring();
        // The search ends by itself and frees what still arrives. Only a turn that begins is waited for.
        if (!this.#mayBegin) resolve(this.#told("aborted"));
      };
      signal.addEventListener("abort", abort, { once: true });
      void seeking.then(resolve, reject).then(() => signal.removeEventListener("abort", abort));
    });
  }

  async #seek(): Promise<TurnLeaseResult> {
    let reclaim: Reclaim | undefined;
    while (!this.#isAborted || this.#mayBegin) {
      const asked = instantOf(this.#deps.host.clock);
      const answer = await this.#ask(asked, reclaim);
      reclaim = undefined;
      if (!answer) continue;
      if (answer.kind === "granted") return await this.#granted(answer);
      if (answer.kind === "nothing-to-run") return this.#told("nothing-to-run");
      if (answer.kind === "suspended") {
        if (this.#goesOnWith(answer.turn)) continue;
        this.#waiting.refused(undefined, answer.turn);
        if (!(await this.#rest(suspendedPollMs))) return this.#told("busy");
        continue;
      }
      if (answer.kind === "held") {
        reclaim = await this.#judged(answer.lease, asked.bootMs);
        if (reclaim) continue;
      } else {
        this.#waiting.refused(answer.head.runner);
        // A head in this process is woken through the bells of its session, and ours is one of them.
        const woken = this.#bell.deafTo(() => wakeHead(this.#deps, this.#sessionId, answer.head));
        if ((await woken) === "gone") continue;
      }
      const change = await this.#change();
      if (change.kind === "over") return this.#told("busy");
      reclaim = change.reclaim;
    }
    return this.#told("aborted");
  }

  /** Answers whether the store is to be asked anew, for this turn. */
  #goesOnWith(turn: SuspendedTurn): boolean {
    const { begin, mayResume } = this.#options;
    const wanted = begin?.resumes && mayResume?.(turn) ? turn.turnId : undefined;
    const isNews = wanted !== undefined && wanted !== this.#resumes;
    this.#resumes = wanted;
    return isNews;
  }

  /** Who may not go on with just any turn asks for one that it has seen. */
  get #begin(): ResolvedTurnLeaseOptions["begin"] {
    const { begin, mayResume } = this.#options;
    return begin && mayResume ? { ...begin, resumes: this.#resumes ?? false } : begin;
  }

  #told(kind: "busy" | "aborted" | "nothing-to-run"): TurnLeaseResult {
    const { elapsedMs: waitedMs, holder } = this.#waiting;
    return kind === "busy" && holder ? { kind, holder, waitedMs } : { kind, waitedMs };
  }

  /** Asks the store once. Absent: it has not answered, and is to be asked again. */
  async #ask(asked: Instant, reclaim: Reclaim | undefined): Promise<AcquireResult | undefined> {
    const { store } = this.#deps;
    const { ttlMs } = this.#options;
    const begin = this.#begin;
    this.#sent ??= asked;
    this.#mayBegin = begin !== undefined;
    const facts = { sessionId: this.#sessionId, holder: this.#holder, ttlMs };
    try {
      const answer = await store.acquire({ ...facts, ...(begin ? { begin } : {}), ...(reclaim ? { reclaim } : {}) });
      if (answer.kind !== "granted") this.#sent = undefined;
      this.#mayBegin = false;
      this.#busySinceMs = undefined;
      return answer;
    } catch (error) {
      this.#bearWith(error);
    }
    this.#waiting.unanswered();
    await this.#bell.wait(busyPauseMs);
    return undefined;
  }

  /** Returns when the store may be asked again; else throws the error. */
  #bearWith(error: unknown): void {
    if (CodedError.is<StoreErrorCode>(error, "STORE_BUSY")) {
      // Nothing was written, and nobody holds anything: not a refusal, and no reason to speak.
      const nowMs = this.#deps.host.clock.monotonicMs();
      this.#busySinceMs ??= nowMs;
      this.#sent = undefined;
      this.#mayBegin = false;
      if (nowMs - this.#busySinceMs <= busyPatienceMs) return;
    } else if (CodedError.is<StoreErrorCode>(error, "STORE_IO")) {
      // The grant may stand. Repeating under the same holder id answers it again, counted from the first sending.
      if (++this.#unknownOutcomeCount < unknownOutcomesMax) return;
    }
    throw error;
  }

  /** Sleeps until it is woken, at most so long; `false` once `waitMs` is used up. */
  async #rest(mostMs: number): Promise<boolean> {
    const restMs = this.#options.waitMs - this.#waiting.elapsedMs;
    if (restMs <= 0) return false;
    this.#waiting.speak();
    await this.#bell.wait(Math.min(mostMs, restMs));
    return true;
  }

  async #judged(lease: LeaseView, readBootMs: number): Promise<Reclaim | undefined> {
    this.#waiting.refused(lease.holder);
    return await this.#judgement.judge(lease, readBootMs);
  }

  /** Sleeps until it is worth asking again: a wake-up, a free or reclaimable lease. `over` when `waitMs` is used up. */
  async #change(): Promise<{ readonly kind: "over" } | { readonly kind: "changed"; readonly reclaim?: Reclaim }> {
    const { waitMs, pollMs } = this.#options;
    for (;;) {
      const restMs = waitMs - this.#waiting.elapsedMs;
      if (restMs <= 0) return { kind: "over" };
      this.#waiting.speak();
      if (await this.#bell.wait(Math.min(pollMs, restMs))) return { kind: "changed" };
      const readBootMs = this.#deps.host.clock.bootMs();
      const lease = await this.#look();
      if (lease === "unanswered") continue;
      // A read costs no write transaction; only what a read shows to be free is asked for.
      if (!lease || lease.standing === "expired") return { kind: "changed" };
      const reclaim = await this.#judged(lease, readBootMs);
      if (reclaim) return { kind: "changed", reclaim };
    }
  }

  async #look(): Promise<LeaseView | undefined | "unanswered"> {
    try {
      return await this.#deps.store.read(this.#sessionId);
    } catch (error) {
      if (CodedError.is<StoreErrorCode>(error, "STORE_BUSY")) return "unanswered";
      throw error;
    }
  }

  async #granted(answer: Granted): Promise<TurnLeaseResult> {
    const { store, host, scheduler, presence, inbox } = this.#deps;
    const grant: Grant = {
      sessionId: this.#sessionId,
      holderId: this.#holder.holderId,
      fencingToken: answer.fencingToken,
    };
    if (this.#isAborted && !this.#options.begin) {
      await this.#giveBack(grant);
      return this.#told("aborted");
    }
    this.#isGranted = true;
    const renewal = new Renewal({ store, scheduler, host }, grant, this.#options, this.#sent ?? instantOf(host.clock));
    const deps = { store, presence, inbox, timers: host.timers };
    const lease = new HeldLease(deps, grant, renewal, this.#registration, this.#options.ttlMs);
    const { revision, input, resumed, predecessors } = answer;
    return {
      kind: "granted",
      lease,
      revision,
      ...(input ? { input } : {}),
      ...(resumed ? { resumed } : {}),
      ...(predecessors ? { predecessors } : {}),
      waitedMs: this.#waiting.elapsedMs,
    };
  }

  /** Frees a grant that arrived when nobody wanted it any more. */
  async #giveBack(grant: Grant): Promise<void> {
    try {
      const result = await this.#deps.store.release(grant);
      if (result.kind === "released") await passOn(this.#deps, this.#sessionId, result);
    } catch {
      // It is not registered any more in a moment: whoever comes next finds it leaked, and reclaims it.
    }
  }
}
