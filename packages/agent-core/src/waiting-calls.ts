import type { Host } from "@turnkeeper/kernel";
import type { Runner, StateStore, SuspendedTurn } from "@turnkeeper/state-store";
import { busyEnd, endOfStoreFailure, endThoughStored, leftInQueue, leftSuspended, shutDownEnd } from "./call-end.ts";
import { reportDefect } from "./defect.ts";
import type { HolderView } from "./events.ts";
import type { CallEnd, StopOptions, TurnCall } from "./turn-call.ts";
import { withKnownOutcome } from "./unknown-outcome.ts";

export interface WaitingCallsDeps {
  readonly host: Host;
  readonly store: StateStore;
  readonly runner: Runner;
  /** Takes over a call whose input somebody else runs. */
  follow(call: TurnCall): void;
  /** Ends a suspended turn by a stop; one that goes on meanwhile is left alone. */
  stopSuspended(turn: SuspendedTurn, stop: StopOptions): Promise<void>;
  /** Calls back the request for the lease that is out and could begin a turn; false: there is none. */
  callBackRequest(): boolean;
}

/**
 * The calls of one session whose inputs this runner is to run and whose turns have not begun, by input: several calls
 * may wait for the same one.
 *
 *   | a waiting call              | its input                        | the call                       |
 *   | --------------------------- | -------------------------------- | ------------------------------ |
 *   | is stopped softly           | stays in the queue, is run here  | ends as queued                 |
 *   | is stopped hard, or         | is withdrawn, unless another     | ends as cancelled or busy;     |
 *   | its patience runs out       | call here waits for it           | follows, where it was too late |
 *   | its runner closes           | becomes an orphan                | ends as queued                 |
 *   | the store fails             | is withdrawn, else an orphan     | ends as failed                 |
 *
 * Calls whose turn is suspended are parked among them: they go on with it here or, where another resumes it, follow it there.
 */
export class WaitingCalls {
  readonly #deps: WaitingCallsDeps;
  readonly #sessionId: string;
  readonly #byInput = new Map<string, TurnCall[]>();
  /** Who has the session in place of the calls, once somebody was seen to have it. */
  #heldBy: { readonly holder: HolderView | undefined; readonly suspended: SuspendedTurn | undefined } | undefined;
  /** Inputs whose turn is suspended. */
  readonly #parked = new Set<string>();

  constructor(deps: WaitingCallsDeps, sessionId: string) {
    this.#deps = deps;
    this.#sessionId = sessionId;
  }

  get isEmpty(): boolean {
    return this.#byInput.size === 0;
  }

  add(call: TurnCall): void {
    const { inputId } = call.request;
    this.#byInput.set(inputId, [...(this.#byInput.get(inputId) ?? []), call]);
    if (this.#heldBy) call.waiting(this.#heldBy.holder, this.#heldBy.suspended);
    call.keptBy({ onStop: () => this.#stop(call), onWaitedOut: () => this.#waitedOut(call) });
  }

  /** Calls whose turn waits for answers: this runner goes on with it once they are there. */
  park(calls: readonly TurnCall[], inputId: string, turn: SuspendedTurn): void {
    const open = calls.filter(({ isFinished }) => !isFinished);
    if (open.length === 0) return;
    this.#byInput.set(inputId, [...open, ...(this.#byInput.get(inputId) ?? [])]);
    this.#parked.add(inputId);
    for (const call of open)
      call.keptBy({ onStop: (stop) => void this.#stopParked(inputId, turn, stop), onWaitedOut: () => {} });
  }

  /** However that comes out, the turn's own end tells it. */
  async #stopParked(inputId: string, turn: SuspendedTurn, stop: StopOptions): Promise<void> {
    await this.#deps.stopSuspended(turn, stop).catch(reportDefect);
    this.#follow(inputId);
    if (this.isEmpty) this.#deps.callBackRequest();
  }

  #follow(inputId: string): void {
    for (const call of this.take(inputId)) this.#deps.follow(call);
  }

  /** The calls whose turn begins, or goes on: they wait no more. */
  take(inputId: string): readonly TurnCall[] {
    const calls = this.#byInput.get(inputId) ?? [];
    this.#byInput.delete(inputId);
    this.#parked.delete(inputId);
    return calls.filter(({ isFinished }) => !isFinished);
  }

  /** Somebody has the session: the calls say so, and those that were stopped meanwhile end. */
  heldBy(holder: HolderView | undefined, suspended?: SuspendedTurn): void {
    this.#heldBy = { holder, suspended };
    // Whoever has the session goes on with the turn that waited, or has come after it.
    if (!suspended) for (const inputId of Array.from(this.#parked)) this.#follow(inputId);
    for (const call of this.#all()) call.waiting(holder, suspended);
    this.leaveStopped();
  }

  /** Nobody is known to have the session any more. */
  heldByNobody(): void {
    this.#heldBy = undefined;
  }

  /** Every input was taken or ended by somebody else: its calls follow it there. */
  followAll(): void {
    for (const call of this.#takeAll()) this.#deps.follow(call);
  }

  /** The runner closes. */
  shutDown(): void {
    const parked = Array.from(this.#parked).flatMap((inputId) => this.take(inputId));
    for (const call of parked) call.finish(leftSuspended);
    for (const call of this.#takeAll()) call.finish(shutDownEnd);
  }

  /**
   * The store failed while they waited. They are told so, and their inputs are withdrawn: what a caller was told has
   * failed must not run later. Where the store does not take even that, they become orphans or stay, and that is told.
   */
  async fail(error: unknown): Promise<void> {
    // One that was told its end is not among them.
    for (const call of this.#takeAll().filter(({ isFinished }) => !isFinished)) {
      const withdrawn = await this.#withdrawInput(call, "cancelled").catch(() => undefined);
      if (withdrawn?.kind === "taken" || withdrawn?.kind === "settled") this.#deps.follow(call);
      else call.finish(withdrawn ? endOfStoreFailure(error) : endThoughStored(error));
    }
  }

  /**
   * Ends the calls that were stopped softly, and leaves their inputs in the queue. Said only when no request for the
   * lease is out that could begin their turns: its outcome comes first.
   */
  leaveStopped(): void {
    const leaving = this.#all().filter((call) => call.isWaiting && call.stopRequest && !this.#cancels(call));
    if (leaving.length === 0 || this.#deps.callBackRequest()) return;
    for (const call of leaving) this.#leave(call);
  }

  /** Nobody waits here for the input any more, unless another call does: it is to be left to others. */
  #leave(call: TurnCall): void {
    const { inputId } = call.request;
    if (this.#isWantedByOthers(call)) return call.finish(leftInQueue);
    const sharers = (this.#byInput.get(inputId) ?? []).filter((other) => other !== call && !other.isFinished);
    if (sharers.length > 0) this.#byInput.set(inputId, sharers);
    else this.#byInput.delete(inputId);
    this.#deps.follow(call);
  }

  #all(): TurnCall[] {
    return [...this.#byInput.values()].flat();
  }

  #takeAll(): TurnCall[] {
    const calls = this.#all();
    this.#byInput.clear();
    this.#parked.clear();
    return calls;
  }

  /**
   * A hard stop takes the input out of the queue; where it was granted meanwhile, its turn is told of the stop as it
   * begins. So is it of a soft one, unless the call is refused.
   */
  #stop(call: TurnCall): void {
    if (!this.#cancels(call)) return this.leaveStopped();
    void this.#withdraw(call, "cancelled", { outcome: "cancelled", reason: "user-stop" });
  }

  #waitedOut(call: TurnCall): void {
    const end = busyEnd(call, this.#deps.runner);
    // The input is another call's too, whose patience lasts.
    if (this.#isWantedByOthers(call)) call.finish(end);
    else void this.#withdraw(call, "expired", end);
  }

  /** Whether the stop of a call ends its input too: a hard one, where no other call here waits for the same. */
  #cancels(call: TurnCall): boolean {
    return call.stopRequest?.hard === true && !this.#isWantedByOthers(call);
  }

  #isWantedByOthers(call: TurnCall): boolean {
    const sharers = this.#byInput.get(call.request.inputId) ?? [];
    return sharers.some((other) => other !== call && !other.isFinished && !other.stopRequest);
  }

  #withdrawInput({ request }: TurnCall, end: "cancelled" | "expired"): ReturnType<StateStore["inbox"]["withdraw"]> {
    const { host, store } = this.#deps;
    return withKnownOutcome(host, () => store.inbox.withdraw(this.#sessionId, request.inputId, end));
  }

  /** Ends a call, if its input has not been taken meanwhile: what a turn has, is followed to that turn's end. */
  async #withdraw(call: TurnCall, end: "cancelled" | "expired", callEnd: CallEnd): Promise<void> {
    try {
      const { kind } = await this.#withdrawInput(call, end);
      if (kind === "taken" || call.isFinished) return;
      const sharers = this.take(call.request.inputId).filter((other) => other !== call);
      if (kind === "settled") this.#deps.follow(call);
      else call.finish(callEnd);
      for (const sharer of sharers) this.#deps.follow(sharer);
      if (this.isEmpty) this.#deps.callBackRequest();
    } catch (error) {
      // The input may still be in the queue, so this runner goes on competing for it; the caller is told what failed.
      call.finish(endThoughStored(error));
    }
  }
}
