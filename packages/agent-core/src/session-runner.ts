import { CodedError } from "@turnkeeper/kernel";
import { unansweredCalls } from "@turnkeeper/state-store";
import type {
  HandOver,
  OpenTurn,
  ParentCall,
  Runner,
  RunningTurn,
  SuspendedTurn,
  TakenInput,
} from "@turnkeeper/state-store";
import { acquireTurnLease } from "@turnkeeper/turn-lease";
import type { TurnLeaseResult } from "@turnkeeper/turn-lease";
import { createProgressClock } from "@turnkeeper/turn-liveness";
import type { ProgressClock } from "@turnkeeper/turn-liveness";
import type { TurnInterrupt } from "@turnkeeper/interrupt";
import { settingsOf, traceParentOf } from "./call-settings.ts";
import { stopOfParent } from "./delegation/orphaned-child.ts";
import type { CallSettings } from "./call-settings.ts";
import type { TurnEventBody } from "./events.ts";
import type { ResolvedAgentOptions } from "./options.ts";
import type { Approval } from "./tool-call.ts";
import { onBehalfOf } from "./reentry.ts";
import { reportDefect } from "./defect.ts";
import { withKnownOutcome } from "./unknown-outcome.ts";
import { requestStop } from "./stop.ts";
import type { StopRequestOptions } from "./stop.ts";
import type { StopOptions, TurnCall } from "./turn-call.ts";
import type { TurnEnding, TurnPause } from "./turn-ending.ts";
import { conductTurn } from "./turn-machinery.ts";
import type { ConductedTurn, TurnDeps, TurnScope } from "./turn-machinery.ts";
import { ToldTurn } from "./told-turn.ts";
import type { ToldTurnDeps } from "./told-turn.ts";
import { WaitingCalls } from "./waiting-calls.ts";

type Granted = Extract<TurnLeaseResult, { kind: "granted" }>;

/** What a turn starts with. */
export interface TurnStart {
  readonly input: TakenInput;
  /** The transcript's revision before the input's own entry. */
  readonly revision: number;
  readonly approval: Approval;
  /** What it is asked with, as its input was offered. */
  readonly settings: CallSettings;
  /** It is the task of a child that runs for its parent's call. */
  readonly isChild: boolean;
  /** The turn as it goes on, with the answers that it waited for; absent for one that begins. */
  readonly resumed?: RunningTurn;
  readonly emit: (event: TurnEventBody) => void;
}

/** What runs inside a turn: our loop, or somebody else's. */
export interface TurnBody {
  run(scope: TurnScope, start: TurnStart): Promise<TurnEnding | TurnPause>;
  /** Whether it can go on with a turn that another body of its kind has paused. */
  readonly resumes: boolean;
  /** Whether it has the tools that a paused turn asked about: without them its answered calls would fail. */
  canResume?(turn: OpenTurn): boolean;
  /** Told how the turn was written down. */
  ended?(sessionId: string, conducted: ConductedTurn): void;
}

export interface CloseOptions {
  /** Let what runs go to its end; a second `close` without it stops that. Default false. */
  readonly drain?: boolean;
}

export interface RunnerDeps extends TurnDeps, ToldTurnDeps {
  readonly runner: Runner;
  readonly body: TurnBody;
  /** Takes over a call whose input somebody else runs. */
  follow(call: TurnCall): void;
  /** Sees to it that the subagents that a suspended turn waits for go on once they are answered. */
  tend(turn: SuspendedTurn): void;
  /** Told that a turn of this child ended here, after which its parent's may go on. */
  childEnded(parent: ParentCall): void;
  /** Told once nothing of this session is left to do here. */
  onIdle(): void;
  /** Told where the store did not take it that inputs of this session are left to others; it is asked again. */
  leaveLater(sessionId: string): void;
}

/** The runner of a session competes as long as it has calls; each call has a patience of its own. */
const competeMs = 7 * 24 * 3_600_000;

/** The deadline that the callers of one input give its turn: the earliest. */
function earliestDeadlineMs(calls: readonly TurnCall[]): number | undefined {
  const deadlines = calls.flatMap(({ request: { deadlineMs } }) => (deadlineMs === undefined ? [] : [deadlineMs]));
  return deadlines.length === 0 ? undefined : Math.min(...deadlines);
}

/** Makes orphans of the inputs that this runner will not run. Where the store refuses, it is asked again. */
export async function leaveToOthers(
  deps: Pick<RunnerDeps, "host" | "store" | "runner" | "leaveLater">,
  sessionId: string,
): Promise<void> {
  const { host, store, runner, leaveLater } = deps;
  // An input that names a living runner is run by nobody else.
  await withKnownOutcome(host, () => store.inbox.abandon(sessionId, runner.runnerId)).catch((error: unknown) => {
    reportDefect(error);
    leaveLater(sessionId);
  });
}

/**
 * Runs one session's turns in this process, one after another: competes for the lease, runs the oldest input it may
 * run (its own or an orphan), and goes on until neither its calls nor the store have anything left.
 */
export class SessionRunner {
  readonly #deps: RunnerDeps;
  readonly #options: ResolvedAgentOptions;
  readonly #sessionId: string;
  readonly #waiting: WaitingCalls;
  #loop: Promise<void> | undefined;
  #acquiring: AbortController | undefined;
  #current: { readonly inputId: string; readonly interrupt: TurnInterrupt } | undefined;
  #hasOrphans = false;
  /** `draining`: what runs goes to its end, and nothing else begins. */
  #closing: "draining" | "stopping" | undefined;

  constructor(deps: RunnerDeps, options: ResolvedAgentOptions, sessionId: string) {
    this.#deps = deps;
    this.#options = options;
    this.#sessionId = sessionId;
    const callBackRequest = (): boolean => {
      this.#acquiring?.abort();
      return this.#acquiring !== undefined;
    };
    const stopSuspended = async ({ fencingToken }: SuspendedTurn, stop: StopOptions): Promise<void> => {
      const { hard = false, by = "caller" } = stop;
      await requestStop(deps, sessionId, { hard, reason: "user-stop", by, fencingToken });
    };
    this.#waiting = new WaitingCalls({ ...deps, callBackRequest, stopSuspended }, sessionId);
  }

  /** A call whose input is stored and names this runner. */
  add(call: TurnCall): void {
    // Its turn began while the answer to its offer was on the way.
    if (call.request.inputId === this.#current?.inputId) return this.#deps.follow(call);
    this.#waiting.add(call);
    this.#start();
  }

  /** A steer that is in the inbox is wanted now: the model request of the running turn, if there is one, is cut short. */
  redirect(text: string): void {
    this.#current?.interrupt.redirect(text);
  }

  /** Inputs wait that nobody was woken for: they are run here. */
  runOrphans(): void {
    this.#hasOrphans = true;
    this.#start();
  }

  /** The turn that the call's input has waits no more for answers: it goes on here, or wherever another was first. */
  resume(call: TurnCall, turn: SuspendedTurn): void {
    this.#waiting.park([call], call.request.inputId, turn);
    this.#start();
  }

  /** Resolves when nothing is left to do. */
  async idle(): Promise<void> {
    await this.#loop;
  }

  /**
   * Stops the running turn as `shutdown`, or with `drain` lets it end, leaves what waits in the queue for others, and
   * resolves when all has ended. Called again without `drain` it stops what still runs.
   */
  async close({ drain = false }: CloseOptions = {}): Promise<void> {
    this.#closing = drain && this.#closing !== "stopping" ? "draining" : "stopping";
    this.#acquiring?.abort();
    if (this.#current && this.#closing === "stopping") this.#shutDown(this.#current.interrupt);
    await this.#loop;
    await leaveToOthers(this.#deps, this.#sessionId);
    this.#waiting.shutDown();
    this.#deps.onIdle();
  }

  #shutDown(interrupt: TurnInterrupt): void {
    const message = "The process that ran this turn is shutting down.";
    void interrupt.interrupt({ hard: true, reason: "shutdown", by: "this process", message });
  }

  #start(): void {
    if (this.#loop || this.#closing !== undefined) return;
    this.#loop = this.#run();
  }

  async #run(): Promise<void> {
    try {
      while (this.#closing === undefined && (!this.#waiting.isEmpty || this.#hasOrphans)) await this.#runOne();
    } catch (error) {
      await this.#waiting.fail(error);
      await leaveToOthers(this.#deps, this.#sessionId);
    }
    // In one step with the last look at the calls: a call added from here on starts a new loop.
    this.#loop = undefined;
    if (this.#waiting.isEmpty) this.#deps.onIdle();
    else this.#start();
  }

  async #runOne(): Promise<void> {
    this.#hasOrphans = false;
    const { store, host, scheduler, presence, runner, body } = this.#deps;
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
        begin: { turnId, runnerId: runner.runnerId, resumes: body.resumes },
        mayResume: (turn) => unansweredCalls(turn).length === 0 && (body.canResume?.(turn) ?? true),
        // Renewal needs evidence that the turn moves: a lease that is renewed for a stuck turn hides it.
        mayRenew: () => liveness === undefined || clock.hasEvidence(liveness.timeoutMs),
        onWaiting: (view) => {
          this.#waiting.heldBy(view.holder, view.suspended);
          if (view.suspended) this.#deps.tend(view.suspended);
        },
      },
    ).finally(() => {
      this.#acquiring = undefined;
      this.#waiting.heldByNobody();
    });
    switch (result.kind) {
      case "granted":
        return this.#conduct(result, result.resumed?.turnId ?? turnId, clock);
      case "nothing-to-run":
        // Every input of this runner was taken or ended by somebody else.
        return this.#waiting.followAll();
      case "busy":
      case "aborted":
        return this.#waiting.leaveStopped();
    }
  }

  async #conduct(granted: Granted, turnId: string, clock: ProgressClock): Promise<void> {
    const { input, lease, predecessors, resumed } = granted;
    if (!input) {
      await lease.release();
      throw new CodedError("STORE_CONTRACT", `The grant of session ${this.#sessionId} began no turn.`);
    }
    const calls = this.#waiting.take(input.inputId);
    const parent = await this.#parentOf(calls, resumed);
    const left = resumed && (await this.#stopOfParent(parent));
    const told = new ToldTurn(this.#deps, { sessionId: this.#sessionId, turnId }, calls);
    const { emit } = told;
    const conducted = await conductTurn(
      this.#deps,
      {
        lease,
        turnId,
        clock,
        predecessors,
        isResumed: resumed !== undefined,
        onInterrupt: (interrupt) => {
          this.#current = { inputId: input.inputId, interrupt };
          if (this.#closing === "stopping") this.#shutDown(interrupt);
          if (left) void interrupt.interrupt(left);
          const begun = { fencingToken: lease.fencingToken, ...(resumed ? { resumes: true as const } : {}) };
          told.started(interrupt, begun, traceParentOf(input.settings));
          // Whoever else waits here waits for this turn now.
          this.#waiting.heldBy(this.#deps.runner);
        },
      },
      { liveness: this.#options.liveness, deadlineMs: earliestDeadlineMs(calls) },
      {
        onStalled: (idleMs, lastProgress) => emit({ type: "turn.stalled", idleMs, lastProgress }),
        onResumed: () => emit({ type: "turn.resumed" }),
      },
      async (scope) => {
        const settings = settingsOf(input.settings);
        // What was asked once, and answered from elsewhere, is asked in the same way again.
        const approval = calls[0]?.request.approval ?? settings.approval ?? (resumed ? "ask" : "deny");
        const isChild = parent !== undefined;
        const start = {
          input,
          revision: granted.revision,
          approval,
          isChild,
          emit,
          settings,
          ...(resumed ? { resumed } : {}),
        };
        const callers = calls.flatMap((call) => call.callers);
        return onBehalfOf(callers, () => this.#deps.body.run(scope, start));
      },
    );
    this.#current = undefined;
    this.#waiting.heldByNobody();
    this.#deps.body.ended?.(this.#sessionId, conducted);
    if (conducted.suspended) {
      told.suspended(conducted.suspended, conducted.asks);
      return this.#waiting.park(calls, input.inputId, conducted.suspended);
    }
    if (!conducted.ending) {
      told.goesOn();
      for (const call of calls) this.#deps.follow(call);
      // Whoever was woken by its end may have been this runner, and was told nothing.
      this.#hasOrphans = conducted.goneOn.state === "ended";
      return;
    }
    this.#hasOrphans = this.#mustCompeteAgain(conducted.handOver);
    told.ended(conducted.ending);
    if (parent) this.#deps.childEnded(parent);
  }

  /** The call that the turn works for: a child's, where it runs its task. */
  async #parentOf(calls: readonly TurnCall[], resumed: RunningTurn | undefined): Promise<ParentCall | undefined> {
    const parent = calls.find(({ request }) => request.parent)?.request.parent;
    // Whoever goes on with a child that another process began was not asked by its parent.
    if (parent || !resumed) return parent;
    const session = await this.#deps.store.sessions.read(this.#sessionId).catch(reportDefect);
    return session?.parent;
  }

  /** A child that goes on here may have been left by a stop that its parent had. */
  async #stopOfParent(parent: ParentCall | undefined): Promise<StopRequestOptions | undefined> {
    if (!parent) return undefined;
    try {
      return await stopOfParent(this.#deps.store, { sessionId: this.#sessionId, parent });
    } catch (error) {
      reportDefect(error);
      return undefined;
    }
  }

  /** Orphans, or our own next input: nobody else was woken for them. */
  #mustCompeteAgain(handOver: HandOver | undefined): boolean {
    if (!handOver || handOver.pendingCount === 0) return false;
    return handOver.head?.runner === undefined || handOver.head.runner.runnerId === this.#deps.runner.runnerId;
  }
}
