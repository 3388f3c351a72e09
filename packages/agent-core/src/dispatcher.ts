import { CodedError } from "@turnkeeper/kernel";
import type { PeriodicHandle } from "@turnkeeper/periodic-scheduler";
import type {
  InputRecord,
  LeaseView,
  OfferResult,
  OpenTurn,
  RequestStopResult,
  Runner,
  SuspendedTurn,
} from "@turnkeeper/state-store";
import { answerApproval } from "./answer-approval.ts";
import type { ApprovalAnswer, ApprovalOutcome } from "./answer-approval.ts";
import { endOfStoreFailure, queueFullEnd, refusedEnd, shutDownEnd } from "./call-end.ts";
import { reportDefect } from "./defect.ts";
import type { TurnEvent } from "./events.ts";
import { followInput } from "./follow.ts";
import { runInputlessTurn } from "./inputless-turn.ts";
import type { InputlessBody } from "./inputless-turn.ts";
import type { ResolvedAgentOptions } from "./options.ts";
import { LeftInputs } from "./left-inputs.ts";
import { Observers } from "./observers.ts";
import { leavesWhenBusy, offerInput } from "./offer-input.ts";
import { reapTurns } from "./reaper.ts";
import { beginWait, refuseReentry, refuseWaitForParent } from "./reentry.ts";
import { Resumption } from "./resumption.ts";
import { checkedSessionId } from "./session-id.ts";
import { leaveToOthers, SessionRunner } from "./session-runner.ts";
import type { CloseOptions, RunnerDeps, TurnBody } from "./session-runner.ts";
import { requestStop } from "./stop.ts";
import { requestOfChild, requestOfRun, requestWithoutInput } from "./call-request.ts";
import type { CallRequest, ChildTask } from "./call-request.ts";
import { TurnCall } from "./turn-call.ts";
import type { RunOptions, StopOptions, Turn } from "./turn-call.ts";
import type { TurnDeps } from "./turn-machinery.ts";

/** How much of what waits for nobody is run here. */
export interface WaitingRun {
  /** Sessions at once, those of earlier calls that still run among them. Default 100. */
  readonly sessionCount?: number;
  /** Told each time one of the sessions that this call began has nothing left to do: there is room for another. */
  readonly onRoom?: () => void;
}

export interface DispatcherDeps extends TurnDeps {
  readonly body: TurnBody;
}

/** A dead holder in somebody's way is found at once; this is for the sessions that nobody asks for. */
const reapEveryMs = 30_000;

/**
 * Brings inputs to their durable ends: stores each before it is acknowledged, gives it to the runner of its session
 * (one turn a session at a time in this process) or follows it where somebody else runs it.
 */
export class Dispatcher implements AsyncDisposable {
  readonly #options: ResolvedAgentOptions;
  readonly #runner: Runner;
  readonly #registration: Disposable;
  readonly #reaper: PeriodicHandle;
  readonly #deps: RunnerDeps;
  readonly #runners = new Map<string, SessionRunner>();
  readonly #work = new Set<Promise<void>>();
  /** Calls whose inputs are taken or run elsewhere, or wait with a suspended turn. */
  readonly #followed = new Set<TurnCall>();
  /** Turns that go on with a call which follows them. */
  readonly #leftToFollower = new Set<string>();
  /** Sessions that are worked on because nobody else did, and who is told once that has ended. */
  readonly #servedForNobody = new Map<string, () => void>();
  readonly #resumption: Resumption;
  readonly #leftInputs: LeftInputs;
  /** Sessions whose inputs are to be left to others, which the store refused so far. */
  readonly #left = new Set<string>();
  readonly #observers = new Observers<TurnEvent>();
  readonly #closing = new AbortController();
  /** Aborts once what runs is to be stopped, too. */
  readonly #stopping = new AbortController();
  #closed: Promise<void> | undefined;

  constructor(deps: DispatcherDeps, options: ResolvedAgentOptions) {
    this.#options = options;
    this.#runner = { runnerId: deps.host.random.id(), ...deps.presence.identity };
    this.#registration = deps.presence.register(this.#runner.runnerId);
    this.#deps = {
      ...deps,
      runner: this.#runner,
      follow: (call) => this.#track(this.#follow(call)),
      observe: (event) => this.#observers.tell(event),
      onIdle: () => {},
      tend: (turn) => this.#track(this.#resumption.ofChildren(turn).catch(reportDefect)),
      childEnded: (parent) => this.#track(this.#resumption.ofParent(parent).catch(reportDefect)),
      leaveLater: (sessionId) => void this.#left.add(sessionId),
    };
    const canResume = (turn: OpenTurn): boolean => this.#mayGoOn(turn);
    const runHere = (sessionId: string): void => this.#runHere(sessionId);
    this.#resumption = new Resumption({ ...this.#deps, canResume, runHere });
    const isServedHere = (sessionId: string): boolean => this.#runners.has(sessionId);
    this.#leftInputs = new LeftInputs({ ...this.#deps, closing: this.#closing.signal, isServedHere, canResume });
    this.#reaper = deps.scheduler.schedule(() => this.#reap(), reapEveryMs, { name: "reaper" });
    this.#track(this.#reap());
  }

  /** Settles what dead processes left, so that nothing runs on in the books; a store that refuses is asked again. */
  async #reap(): Promise<void> {
    const left = Array.from(this.#left);
    this.#left.clear();
    for (const sessionId of left) await leaveToOthers(this.#deps, sessionId);
    try {
      await reapTurns(this.#deps);
    } catch (error) {
      // It must not take down the turns that run; the next round tries again.
      reportDefect(error);
    }
  }

  run(sessionId: string, input: string, options: RunOptions = {}): Turn {
    this.#refuseClosed();
    const { onBusy = "wait" } = options;
    if (onBusy === "wait" || onBusy === "interrupt") refuseReentry(sessionId);
    return this.#begin(requestOfRun(this.#deps.host, this.#options, { ...options, sessionId, input }));
  }

  /** Whatever turns made the call wait for its end. */
  #begin(request: CallRequest): Turn {
    const call = new TurnCall(this.#deps.host, request);
    const wait = beginWait(call.request.sessionId);
    void call.turn.result.then(() => wait[Symbol.dispose]());
    this.#track(this.#start(call));
    return call.turn;
  }

  /** Runs a child's task as the first turn of its session, which is made for it. */
  runChild(task: ChildTask): Turn {
    this.#refuseClosed();
    return this.#begin(requestOfChild(this.#options, task));
  }

  /** Runs work that nobody sent a message for as a turn of its own, where the session is free at once. */
  runWithoutInput(sessionId: string, body: InputlessBody): Turn {
    this.#refuseClosed();
    const call = new TurnCall(this.#deps.host, requestWithoutInput(this.#deps.host, sessionId));
    this.#track(this.#conductWithoutInput(call, body));
    return call.turn;
  }

  async #conductWithoutInput(call: TurnCall, body: InputlessBody): Promise<void> {
    const deps = { ...this.#deps, closing: this.#closing.signal, stopping: this.#stopping.signal };
    const handOver = await runInputlessTurn(deps, this.#options, call, body);
    // Orphans: nobody else was woken for them.
    const isLeftToUs = handOver !== undefined && handOver.pendingCount > 0 && handOver.head?.runner === undefined;
    if (isLeftToUs && !this.#closing.signal.aborted) this.#runnerOf(call.request.sessionId).runOrphans();
  }

  #refuseClosed(): void {
    if (this.#closing.signal.aborted) throw new CodedError("AGENT_CLOSED", "The agent is closed; make another one.");
  }

  #track(work: Promise<void>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  /** Stores the input, and gives the call to whoever will bring it to its end. Never rejects. */
  async #start(call: TurnCall): Promise<void> {
    try {
      const { sessionId, inputId, text, onBusy, parent, settings, queueLengthMax } = call.request;
      const waits = !parent && (onBusy === "wait" || onBusy === "interrupt");
      // Whom nobody waits for is not held up: messages are offered in the order of their calls.
      if (waits && call.callers.length > 0) await refuseWaitForParent(this.#deps.store, call.callers, sessionId);
      const more = {
        ...(parent ? { parent } : {}),
        ...(settings === undefined ? {} : { settings }),
        ...(queueLengthMax === undefined ? {} : { queueLengthMax }),
      };
      const request = { sessionId, inputId, text, onBusy, runner: this.#runner, ...more };
      const offer = await offerInput({ ...this.#deps, closing: this.#closing.signal }, request);
      if (offer.kind === "busy")
        return call.finish(refusedEnd(offer.lease?.holder ?? offer.head?.runner, this.#runner, offer.suspended));
      if (offer.kind === "full") return call.finish(queueFullEnd(offer.waitingCount));
      if (offer.kind === "conflict") {
        const detail = `Input id ${inputId} was used with other content in session ${sessionId}; nothing was stored.`;
        return call.finish({ outcome: "failed", reason: "input_id_conflict", detail });
      }
      const mayLeave = leavesWhenBusy(onBusy) && offer.kind === "known" && (await this.#isBusyWith(offer));
      if (mayLeave && onBusy === "reject")
        return call.finish(refusedEnd(offer.lease?.holder, this.#runner, offer.suspended));
      call.emit({ type: "input.accepted", inputId });
      // Accepted: from here on somebody is responsible for it, whatever else fails.
      if (mayLeave) return await this.#leave(call, offer.input);
      await this.#place(call, offer);
      const isWanted = !call.stopRequest && !this.#closing.signal.aborted;
      // A turn is in the way of what waits alone: the one that has the input answers it, and after the end none is (INT-2).
      const inTheWay = offer.input.state === "pending" ? (offer.lease ?? offer.suspended) : undefined;
      if (onBusy === "interrupt" && inTheWay && isWanted) await this.#interruptForMessage(inTheWay);
    } catch (error) {
      call.finish(endOfStoreFailure(error));
    }
  }

  async #place(call: TurnCall, { input }: Extract<OfferResult, { kind: "accepted" | "known" }>): Promise<void> {
    const { sessionId } = call.request;
    if (input.state !== "pending") return this.#deps.follow(call);
    if (input.runner?.runnerId === this.#runner.runnerId) {
      if (!this.#closing.signal.aborted) return this.#runnerOf(sessionId).add(call);
      // Closed while the offer was on its way: nothing starts any more.
      await leaveToOthers(this.#deps, sessionId);
      return call.finish(shutDownEnd);
    }
    if (input.runner !== undefined) return this.#deps.follow(call);
    await this.#leave(call, input);
  }

  /** Whether a repeat whose caller does not wait may leave: its input has a process that runs it, or will. */
  async #isBusyWith({ input, lease, suspended }: Extract<OfferResult, { kind: "known" }>): Promise<boolean> {
    if (input.state === "settled") return false;
    if (lease !== undefined || suspended !== undefined) return true;
    if (input.state === "taken") return false;
    const { runner } = input;
    // An orphan of a free session stands behind a live waiter, or the offer would have adopted it.
    if (runner === undefined) return true;
    if (runner.runnerId === this.#runner.runnerId) return false;
    const fate = await this.#deps.presence.probe(runner, runner.runnerId);
    return fate !== "dead" && fate !== "unknown-here";
  }

  /** The input is stored, and others run it. */
  async #leave(call: TurnCall, input: InputRecord): Promise<void> {
    const { sessionId, inputId, redirect, text } = call.request;
    const isOrphan = input.state === "pending" && input.runner === undefined;
    if (isOrphan && call.stopRequest?.hard) {
      const withdrawn = await this.#deps.store.inbox.withdraw(sessionId, inputId, "cancelled");
      if (withdrawn.kind === "withdrawn") return call.finish({ outcome: "cancelled", reason: "user-stop" });
    }
    if (isOrphan && redirect) this.#runners.get(sessionId)?.redirect(text);
    call.finish({ outcome: "queued" });
  }

  /** Asks the turn that was in the way to make way. Where that fails the message merely waits for its end. */
  async #interruptForMessage({ sessionId, fencingToken }: LeaseView | SuspendedTurn): Promise<void> {
    const stop = { hard: false, reason: "user-message", by: `pid ${this.#runner.pid}`, fencingToken } as const;
    try {
      await requestStop(this.#deps, sessionId, stop);
    } catch (error) {
      if (!CodedError.is(error)) throw error;
    }
  }

  async #follow(call: TurnCall): Promise<void> {
    const rejoin = async (back: TurnCall): Promise<void> => this.#place(back, await this.#adopt(back));
    const resume = (back: TurnCall, turn: SuspendedTurn): boolean => {
      if (!this.#mayGoOn(turn) || this.#closing.signal.aborted) return false;
      this.#runnerOf(back.request.sessionId).resume(back, turn);
      return true;
    };
    this.#followed.add(call);
    try {
      await followInput({ ...this.#deps, closing: this.#closing.signal, rejoin, resume }, call);
    } finally {
      this.#followed.delete(call);
      // Its follower may have had to leave before it could go on with it.
      if (call.turnId !== undefined && this.#leftToFollower.delete(call.turnId)) this.#runHere(call.request.sessionId);
    }
  }

  async #adopt(call: TurnCall): Promise<Extract<OfferResult, { kind: "accepted" | "known" }>> {
    const { sessionId, inputId, text } = call.request;
    const offer = await this.#deps.store.inbox.offer({
      sessionId,
      inputId,
      text,
      onBusy: "wait",
      runner: this.#runner,
    });
    if (offer.kind === "accepted" || offer.kind === "known") return offer;
    throw new CodedError(
      "STORE_CONTRACT",
      `Input ${inputId} of session ${sessionId} was offered again and answered ${offer.kind}.`,
    );
  }

  #runnerOf(sessionId: string): SessionRunner {
    let runner = this.#runners.get(sessionId);
    if (!runner) {
      runner = new SessionRunner({ ...this.#deps, onIdle: () => this.#isIdle(sessionId) }, this.#options, sessionId);
      this.#runners.set(sessionId, runner);
    }
    return runner;
  }

  #isIdle(sessionId: string): void {
    this.#runners.delete(sessionId);
    const tellRoom = this.#servedForNobody.get(sessionId);
    this.#servedForNobody.delete(sessionId);
    tellRoom?.();
  }

  async runWaiting(sessionCount: number, onRoom: () => void = () => {}): Promise<number> {
    this.#refuseClosed();
    const room = sessionCount - this.#servedForNobody.size;
    const left = room > 0 ? await this.#leftInputs.find(room) : [];
    if (this.#closing.signal.aborted) return 0;
    let begunCount = 0;
    for (const sessionId of left) {
      // A call came meanwhile, or another look was made: it is served already, or there is no room.
      if (this.#runners.has(sessionId) || this.#servedForNobody.size >= sessionCount) continue;
      this.#servedForNobody.set(sessionId, onRoom);
      this.#runnerOf(sessionId).runOrphans();
      begunCount++;
    }
    return begunCount;
  }

  observe(listener: (event: TurnEvent) => void): Disposable {
    return this.#observers.observe(listener);
  }

  async stop(sessionId: string, options: StopOptions = {}): Promise<RequestStopResult> {
    const { hard = false, by = `pid ${this.#runner.pid}` } = options;
    const checked = checkedSessionId(sessionId);
    // A turn that died with its process does not run: it is settled, and nobody is told that it will stop.
    await reapTurns(this.#deps, checked).catch(reportDefect);
    const result = await requestStop(this.#deps, checked, { hard, reason: "user-stop", by });
    // It waited for approval, held by nobody: what waits behind it, and names nobody, is left to whoever stopped it.
    if (result.kind === "stopped" && result.pendingCount > 0 && result.head === undefined) this.#runHere(checked);
    return result;
  }

  /** Answers a call; where nobody lives who asked, the turn goes on here once nothing is open, if it can. */
  async answer(sessionId: string, callId: string, answer: ApprovalAnswer): Promise<ApprovalOutcome> {
    const by = answer.by ?? `pid ${this.#runner.pid}`;
    const outcome = await answerApproval(this.#deps, { ...answer, sessionId: checkedSessionId(sessionId), callId, by });
    const isLeft = outcome.kind === "recorded" && outcome.openCallIds.length === 0 && !outcome.isResumed;
    if (!isLeft || !this.#mayGoOn(outcome.turn) || this.#closing.signal.aborted) return outcome;
    if (!(await this.#followerGoesOn(outcome.turn))) this.#runHere(sessionId);
    return { ...outcome, isResumed: true };
  }

  /** Whoever follows the turn here goes on with it, and so is told all that happens in it. */
  async #followerGoesOn({ sessionId, turnId }: OpenTurn): Promise<boolean> {
    const { presence } = this.#deps;
    if (![...this.#followed].some((call) => call.turnId === turnId)) return false;
    this.#leftToFollower.add(turnId);
    if ((await presence.wake(presence.identity, sessionId)) === "woken") return true;
    return !this.#leftToFollower.delete(turnId);
  }

  /** Without the tools that it asked about its answered calls would fail. */
  #mayGoOn(turn: OpenTurn): boolean {
    const { body } = this.#deps;
    return body.resumes && (body.canResume?.(turn) ?? true);
  }

  #runHere(sessionId: string): void {
    if (!this.#closing.signal.aborted) this.#runnerOf(sessionId).runOrphans();
  }

  async idle(): Promise<void> {
    while (this.#work.size > 0 || this.#runners.size > 0) {
      await Promise.all(this.#work);
      await Promise.all([...this.#runners.values()].map((runner) => runner.idle()));
    }
  }

  close(options: CloseOptions = {}): Promise<void> {
    if (!options.drain) this.#stopping.abort();
    if (this.#closed && !options.drain) void this.#closeRunners(options);
    return (this.#closed ??= this.#close(options));
  }

  async #closeRunners(options: CloseOptions): Promise<void> {
    await Promise.all([...this.#runners.values()].map((runner) => runner.close(options)));
  }

  async #close(options: CloseOptions): Promise<void> {
    // What is on its way here sees this before it starts anything.
    this.#closing.abort();
    await this.#closeRunners(options);
    await this.#reaper.cancel({ waitMs: 1000 });
    await this.idle();
    this.#registration[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
