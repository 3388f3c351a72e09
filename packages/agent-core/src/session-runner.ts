import { CodedError } from "@turnkeeper/kernel";
import type { HandOver, Runner, TakenInput } from "@turnkeeper/state-store";
import { acquireTurnLease } from "@turnkeeper/turn-lease";
import type { TurnLeaseResult } from "@turnkeeper/turn-lease";
import { createProgressClock } from "@turnkeeper/turn-liveness";
import type { ProgressClock } from "@turnkeeper/turn-liveness";
import type { TurnInterrupt } from "@turnkeeper/interrupt";
import type { TurnEventBody } from "./events.ts";
import type { ResolvedAgentOptions } from "./options.ts";
import { processMarkerOf } from "./process-marker.ts";
import type { Approval } from "./tool-call.ts";
import { withKnownOutcome } from "./unknown-outcome.ts";
import type { CallEnd, StopOptions, TurnCall } from "./turn-call.ts";
import { conductTurn } from "./turn-machinery.ts";
import type { ConductedTurn, TurnDeps, TurnEnding, TurnScope } from "./turn-machinery.ts";

type Granted = Extract<TurnLeaseResult, { kind: "granted" }>;

/** What a turn starts with. */
export interface TurnStart {
  readonly input: TakenInput;
  /** The transcript's revision before the input's own entry. */
  readonly revision: number;
  readonly approval: Approval;
  readonly emit: (event: TurnEventBody) => void;
}

/** What runs inside a turn: our loop, or somebody else's. */
export interface TurnBody {
  run(scope: TurnScope, start: TurnStart): Promise<TurnEnding>;
  /** Told how the turn was written down. */
  ended?(sessionId: string, conducted: ConductedTurn): void;
}

export interface RunnerDeps extends TurnDeps {
  readonly runner: Runner;
  readonly body: TurnBody;
  /** Takes over a call whose input somebody else runs. */
  follow(call: TurnCall): void;
  /** Told once nothing of this session is left to do here. */
  onIdle(): void;
}

/** The runner of a session competes as long as it has calls; each call has a patience of its own. */
const competeMs = 7 * 24 * 3_600_000;

export function endOfStoreFailure(error: unknown): CallEnd {
  if (CodedError.is(error)) return { outcome: "failed", reason: error.code, detail: error.message };
  return { outcome: "failed", reason: "INTERNAL", detail: error instanceof Error ? error.message : String(error) };
}

/**
 * Runs one session's turns in this process, one after another: competes for the lease, runs the oldest input it may
 * run (its own or an orphan), and goes on until neither its calls nor the store have anything left.
 */
export class SessionRunner {
  readonly #deps: RunnerDeps;
  readonly #options: ResolvedAgentOptions;
  readonly #sessionId: string;
  readonly #calls = new Map<string, TurnCall[]>();
  #loop: Promise<void> | undefined;
  #acquiring: AbortController | undefined;
  #current: TurnInterrupt | undefined;
  #hasOrphans = false;
  #isClosing = false;

  constructor(deps: RunnerDeps, options: ResolvedAgentOptions, sessionId: string) {
    this.#deps = deps;
    this.#options = options;
    this.#sessionId = sessionId;
  }

  /** A call whose input is stored and names this runner. */
  add(call: TurnCall): void {
    const { inputId } = call.request;
    this.#calls.set(inputId, [...(this.#calls.get(inputId) ?? []), call]);
    call.onStop = (options) => void this.#stopWaiting(call, options);
    call.onWaitedOut = () =>
      void this.#withdraw(call, "expired", { outcome: "busy", reason: "session_busy", detail: busyDetail(call) });
    if (this.#current) call.waiting(this.#deps.runner);
    this.#start();
  }

  /** Resolves when nothing is left to do. */
  async idle(): Promise<void> {
    await this.#loop;
  }

  /** Stops the running turn as `shutdown`, leaves what waits in the queue for others, and resolves when all has ended. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#acquiring?.abort();
    if (this.#current) this.#shutDown(this.#current);
    await this.#loop;
    await this.#deps.store.inbox.abandon(this.#sessionId, this.#deps.runner.runnerId);
    for (const call of [...this.#calls.values()].flat()) call.finish({ outcome: "queued", reason: "shutdown" });
    this.#calls.clear();
    this.#deps.onIdle();
  }

  #shutDown(interrupt: TurnInterrupt): void {
    const message = "The process that ran this turn is shutting down.";
    void interrupt.interrupt({ hard: true, reason: "shutdown", by: "this process", message });
  }

  #start(): void {
    if (this.#loop || this.#isClosing) return;
    this.#loop = this.#run();
  }

  async #run(): Promise<void> {
    try {
      while (!this.#isClosing && (this.#calls.size > 0 || this.#hasOrphans)) await this.#runOne();
    } catch (error) {
      await this.#giveUp(error);
    }
    // In one step with the last look at the calls: a call added from here on starts a new loop.
    this.#loop = undefined;
    if (this.#calls.size === 0) this.#deps.onIdle();
    else this.#start();
  }

  /**
   * The store failed while calls waited for their turn. They are told so, and their inputs are withdrawn: what a caller
   * was told has failed must not run later. Where the store does not take even that, they become orphans or stay.
   */
  async #giveUp(error: unknown): Promise<void> {
    const { store, runner } = this.#deps;
    const calls = [...this.#calls.values()].flat();
    this.#calls.clear();
    for (const call of calls) {
      const { inputId } = call.request;
      const withdrawn = await withKnownOutcome(this.#deps.host, () =>
        store.inbox.withdraw(this.#sessionId, inputId, "cancelled"),
      ).catch(() => undefined);
      if (withdrawn?.kind === "taken" || withdrawn?.kind === "settled") this.#deps.follow(call);
      else call.finish(endOfStoreFailure(error));
    }
    await withKnownOutcome(this.#deps.host, () => store.inbox.abandon(this.#sessionId, runner.runnerId)).catch(() => 0);
  }

  async #runOne(): Promise<void> {
    this.#hasOrphans = false;
    const { store, host, scheduler, presence, runner } = this.#deps;
    const { liveness, lease } = this.#options;
    const turnId = host.random.id();
    const clock = createProgressClock({ host });
    this.#acquiring = new AbortController();
    const result = await acquireTurnLease(
      { store: store.leases, inbox: store.inbox, scheduler, host, presence },
      this.#sessionId,
      {
        ...lease,
        waitMs: competeMs,
        signal: this.#acquiring.signal,
        begin: { turnId, runnerId: runner.runnerId },
        // Renewal needs evidence that the turn moves: a lease that is renewed for a stuck turn hides it.
        mayRenew: () => liveness === undefined || clock.hasEvidence(liveness.timeoutMs),
        onWaiting: (view) => {
          for (const call of [...this.#calls.values()].flat()) call.waiting(view.holder);
        },
      },
    );
    this.#acquiring = undefined;
    switch (result.kind) {
      case "granted":
        return this.#conduct(result, turnId, clock);
      case "nothing-to-run":
        return this.#handOff();
      case "busy":
      case "aborted":
        return;
    }
  }

  /** Every input of this runner was taken or ended by somebody else: its calls follow it there. */
  #handOff(): void {
    const calls = [...this.#calls.values()].flat();
    this.#calls.clear();
    for (const call of calls) this.#deps.follow(call);
  }

  async #conduct(granted: Granted, turnId: string, clock: ProgressClock): Promise<void> {
    const { input, lease, predecessor } = granted;
    if (!input) throw new CodedError("STORE_CONTRACT", `The grant of session ${this.#sessionId} began no turn.`);
    const calls = this.#calls.get(input.inputId) ?? [];
    this.#calls.delete(input.inputId);
    const emit = (event: TurnEventBody): void => {
      for (const call of calls) call.emit(event);
    };
    const conducted = await conductTurn(
      this.#deps,
      {
        lease,
        turnId,
        clock,
        onInterrupt: (interrupt) => {
          this.#current = interrupt;
          if (this.#isClosing) this.#shutDown(interrupt);
          for (const call of calls) {
            call.started(turnId, lease.fencingToken);
            call.onStop = ({ hard = false, by = "caller" }) =>
              void interrupt.interrupt({ hard, reason: "user-stop", by });
          }
          // Whoever else waits here waits for this turn now.
          for (const call of [...this.#calls.values()].flat()) call.waiting(this.#deps.runner);
        },
      },
      { liveness: this.#options.liveness },
      {
        onStalled: (idleMs, lastProgress) => emit({ type: "turn.stalled", idleMs, lastProgress }),
        onResumed: () => emit({ type: "turn.resumed" }),
      },
      async (scope) => {
        // What a dead predecessor left running on this host ends before this turn's first side effect.
        if (predecessor) await this.#deps.endProcesses?.(processMarkerOf(predecessor.turn.turnId));
        const approval = calls[0]?.request.approval ?? "deny";
        return this.#deps.body.run(scope, { input, revision: granted.revision, approval, emit });
      },
    );
    this.#current = undefined;
    this.#deps.body.ended?.(this.#sessionId, conducted);
    this.#hasOrphans = this.#mustCompeteAgain(conducted.handOver);
    const { entries: _entries, ...end } = conducted.ending;
    for (const call of calls) call.finish(end);
  }

  /** Orphans, or our own next input: nobody else was woken for them. */
  #mustCompeteAgain(handOver: HandOver | undefined): boolean {
    if (!handOver || handOver.pendingCount === 0) return false;
    return handOver.head?.runner === undefined || handOver.head.runner.runnerId === this.#deps.runner.runnerId;
  }

  async #stopWaiting(call: TurnCall, options: StopOptions): Promise<void> {
    if (options.hard) return this.#withdraw(call, "cancelled", { outcome: "cancelled", reason: "user-stop" });
    // A soft stop ends the waiting, not the input: it keeps its place, and this runner still runs it if it stays.
    call.finish({ outcome: "queued", reason: "user-stop", detail: "Stopped waiting. The message stays in the queue." });
  }

  /** Ends a waiting call, if its input has not been taken meanwhile: what a turn has, is followed to that turn's end. */
  async #withdraw(call: TurnCall, end: "cancelled" | "expired", callEnd: CallEnd): Promise<void> {
    const { inputId } = call.request;
    try {
      const result = await withKnownOutcome(this.#deps.host, () =>
        this.#deps.store.inbox.withdraw(this.#sessionId, inputId, end),
      );
      if (result.kind === "taken" || call.isFinished) return;
      if (result.kind === "settled") return this.#forget(call, () => this.#deps.follow(call));
      this.#forget(call, () => call.finish(callEnd));
    } catch (error) {
      // The input may still be in the queue, so this runner goes on competing for it; the caller is told what failed.
      call.finish(endOfStoreFailure(error));
    }
  }

  #forget(call: TurnCall, then: () => void): void {
    const sharers = (this.#calls.get(call.request.inputId) ?? []).filter((other) => other !== call);
    this.#calls.delete(call.request.inputId);
    then();
    for (const sharer of sharers) this.#deps.follow(sharer);
    if (this.#calls.size === 0) this.#acquiring?.abort();
  }
}

function busyDetail(call: TurnCall): string {
  const holder = call.holder ? ` It is held by pid ${call.holder.pid} on ${call.holder.host}.` : "";
  return `Session ${call.request.sessionId} stayed busy for ${Math.round(call.request.waitMs / 1000)} s; the message was not processed. Send it again.${holder}`;
}
