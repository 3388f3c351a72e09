import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { unansweredCalls } from "@turnkeeper/state-store";
import type { InputRecord, PendingInput, Runner, SuspendedTurn, TakenInput, TurnRecord } from "@turnkeeper/state-store";
import { endOfStoreFailure, leftInQueue, leftTurn, shutDownEnd, unansweredStopEnd, unfollowedEnd } from "./call-end.ts";
import { reportDefect } from "./defect.ts";
import { readQuestions } from "./open-questions.ts";
import { reapTurns } from "./reaper.ts";
import type { ReapDeps } from "./reaper.ts";
import { requestStop } from "./stop.ts";
import { storedEnd } from "./stored-end.ts";
import type { CallEnd, StopOptions, TurnCall } from "./turn-call.ts";

/** Between two looks at the input; with the judgement it makes three cheap reads a second. */
const lookEveryMs = 400;
/** Between two judgements of whoever runs the input. */
const judgeEveryMs = 2000;

/** How long the process of a turn may take over a hard stop before it is asked whether it answers at all. */
const answerGraceMs = 2000;

export type FollowDeps = ReapDeps & {
  readonly host: Host;
  readonly runner: Runner;
  /** Aborts when the agent is closed: nobody is followed any more. */
  readonly closing: AbortSignal;
  /** Gives a call back to the runner of its session: its input is pending and has nobody else to run it. */
  readonly rejoin: (call: TurnCall) => Promise<void>;
  /** Gives it to that runner to go on with its turn, which waited for answers; false: it cannot. */
  readonly resume: (call: TurnCall, turn: SuspendedTurn) => boolean;
  /** Sees to it that the subagents that a suspended turn waits for go on once they are answered. */
  readonly tend: (turn: SuspendedTurn) => void;
  /** Inputs of the session may still name this runner, and are to be left to others. */
  readonly leaveLater: (sessionId: string) => void;
};

/** Where the call is handed to, or how it ends; nothing: it goes on. */
type Look = { readonly end: CallEnd } | "rejoin" | "resumed" | undefined;

/**
 * Follows an input that somebody else runs to its durable end. A holder or runner that dies on the way is noticed: its
 * turn is settled, its pending input is run here.
 *
 *   | the input is         | a stop, soft or hard         | closing, patience out | else                       |
 *   | -------------------- | ---------------------------- | --------------------- | -------------------------- |
 *   | pending, another's   | ends the following alone     | ends the following    | goes on                    |
 *   | pending, our own     | soft: leaves it to others    | ends the following    | is run here                |
 *   | pending, nobody's    | soft: so; hard: it cancels   | ends the following    | is run here                |
 *   | taken by a turn      | asks exactly that turn; hard | ends the following    | goes on to the turn's end  |
 *   |                      | and unanswered: ends the     |                       |                            |
 *   |                      | following, after a grace     |                       |                            |
 *   | taken by a turn that | ends the turn                | ends the following    | questions are told; once   |
 *   |  waits for approval  |                              |                       | all are answered: goes on  |
 *   | settled              | ends as it was stored        | so                    | so                         |
 */
class Following {
  readonly #deps: FollowDeps;
  readonly #call: TurnCall;
  #turn: TurnRecord | undefined;
  #hasWaitedOut = false;
  #told: StopOptions | undefined;
  #toldAtMs = Number.POSITIVE_INFINITY;
  #judgedAtMs = Number.NEGATIVE_INFINITY;
  #isRung = false;
  #isPaused = false;
  #wake = (): void => {};

  constructor(deps: FollowDeps, call: TurnCall) {
    this.#deps = deps;
    this.#call = call;
  }

  async run(): Promise<void> {
    const { presence, closing, rejoin } = this.#deps;
    const call = this.#call;
    using _wakeUps = presence.onWake(call.request.sessionId, this.#ring);
    closing.addEventListener("abort", this.#ring, { once: true });
    call.keptBy({
      onStop: this.#ring,
      onWaitedOut: () => {
        this.#hasWaitedOut = true;
        this.#ring();
      },
    });
    try {
      let look: Look;
      while (!(look = await this.#look())) await this.#pause();
      if (look === "rejoin") await rejoin(call);
      else if (look !== "resumed") call.finish(look.end);
    } finally {
      closing.removeEventListener("abort", this.#ring);
    }
  }

  async #look(): Promise<Look> {
    this.#isRung = false;
    const { sessionId, inputId } = this.#call.request;
    const input: InputRecord | undefined = await this.#deps.store.inbox.read(sessionId, inputId);
    if (!input)
      throw new CodedError("SESSION_DELETED", `Session ${sessionId} was deleted while its input was waited for.`);
    if (input.state !== "pending" && input.turnId !== undefined) this.#call.following(input.turnId);
    if (input.state === "settled") return { end: await storedEnd(this.#deps.store, input) };
    return input.state === "taken" ? this.#lookAtTurn(input) : this.#lookAtQueue(input);
  }

  async #lookAtTurn({ sessionId, turnId }: TakenInput): Promise<Look> {
    const { store, closing } = this.#deps;
    const isDue = this.#isJudgementDue();
    // It may be suspended, and then go on under another grant.
    const isKnown = this.#turn?.turnId === turnId && this.#turn.state === "running" && !isDue;
    if (!isKnown) this.#turn = await store.turns.read(sessionId, turnId);
    if (this.#turn) await this.#passStopOn(this.#turn);
    if (closing.aborted) return { end: leftTurn };
    if (this.#turn && (await this.#isStopUnanswered(this.#turn))) return { end: unansweredStopEnd(this.#turn.holder) };
    if (this.#hasWaitedOut) return { end: unfollowedEnd(this.#call) };
    if (this.#turn?.state === "suspended") return this.#lookAtQuestions(this.#turn);
    this.#pauses(false);
    this.#call.waiting(this.#turn?.holder);
    if (isDue) await this.#reap(sessionId);
    return undefined;
  }

  /** Tells what is asked, once; with nothing left to ask the turn goes on, here unless another is first. */
  async #lookAtQuestions(turn: SuspendedTurn): Promise<Look> {
    if (unansweredCalls(turn).length === 0) return this.#deps.resume(this.#call, turn) ? "resumed" : undefined;
    const call = this.#call;
    call.waiting(undefined, turn);
    this.#pauses(true);
    this.#deps.tend(turn);
    for (const question of await readQuestions(this.#deps.store, turn, (one) => !call.wasAsked(one)))
      call.tell(question);
    return undefined;
  }

  /** Whoever waits for the call with a turn of its own may let go of that meanwhile. */
  #pauses(isPaused: boolean): void {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    this.#call.request.onPause?.(isPaused);
  }

  /** Asks the turn that has the input to stop, and no other: it is named by its token. */
  async #passStopOn({ sessionId, fencingToken }: TurnRecord): Promise<void> {
    const { stopRequest } = this.#call;
    if (!stopRequest || stopRequest === this.#told) return;
    const { hard = false, by = "caller" } = stopRequest;
    const asked = await requestStop(this.#deps, sessionId, { hard, reason: "user-stop", by, fencingToken });
    if (asked.kind === "nothing-running") {
      // It has ended, or goes on under another grant, which is to be asked.
      this.#turn = undefined;
      return;
    }
    this.#told = stopRequest;
    this.#toldAtMs = this.#deps.host.clock.monotonicMs();
  }

  /** A process that is stopped or out of reach may hold its turn for as long as the lease lasts: a hard stop is not. */
  async #isStopUnanswered({ holder }: TurnRecord): Promise<boolean> {
    if (!this.#told?.hard || this.#deps.host.clock.monotonicMs() - this.#toldAtMs < answerGraceMs) return false;
    return (await this.#deps.presence.probe(holder, holder.holderId)) === "unknown";
  }

  async #lookAtQueue({ sessionId, runner }: PendingInput): Promise<Look> {
    const { presence, closing, store } = this.#deps;
    const { stopRequest } = this.#call;
    if (closing.aborted) return { end: shutDownEnd };
    if (this.#hasWaitedOut) return { end: unfollowedEnd(this.#call) };
    if (runner?.runnerId === this.#deps.runner.runnerId) {
      if (!stopRequest || stopRequest.hard) return "rejoin";
      // Left to others before that is said: what this runner is to run, it runs (rule 7.10).
      await store.inbox.abandon(sessionId, runner.runnerId, this.#call.request.inputId);
      this.#isRung = true;
      return undefined;
    }
    // Nobody else's: a hard stop cancels it, which is the runner's to carry out.
    if (runner === undefined) return stopRequest && !stopRequest.hard ? { end: leftInQueue } : "rejoin";
    if (stopRequest || this.#isJudgementDue()) {
      const fate = await presence.probe(runner, runner.runnerId);
      if (fate === "dead" || fate === "unknown-here") {
        await store.inbox.abandon(sessionId, runner.runnerId);
        this.#isRung = true;
        return undefined;
      }
      // The input is that runner's caller's too; what ends is the following.
      if (stopRequest) return { end: leftInQueue };
    }
    this.#call.waiting(runner);
    return undefined;
  }

  async #reap(sessionId: string): Promise<void> {
    try {
      if ((await reapTurns(this.#deps, sessionId)).length > 0) this.#isRung = true;
    } catch (error) {
      // Tried again at the next judgement; a store that fails is met at the next look.
      reportDefect(error);
    }
  }

  #isJudgementDue(): boolean {
    const nowMs = this.#deps.host.clock.monotonicMs();
    if (nowMs - this.#judgedAtMs < judgeEveryMs) return false;
    this.#judgedAtMs = nowMs;
    return true;
  }

  readonly #ring = (): void => {
    this.#isRung = true;
    this.#wake();
  };

  /** Until the next look; a ring since the last one began is not slept over. */
  async #pause(): Promise<void> {
    if (this.#isRung) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#deps.host.timers.after(lookEveryMs, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

/** Follows the call's input until the call has ended or is given back to a runner here. Never rejects. */
export async function followInput(deps: FollowDeps, call: TurnCall): Promise<void> {
  try {
    await new Following(deps, call).run();
  } catch (error) {
    // The input may still be this runner's, and nobody here asks for it any more.
    deps.leaveLater(call.request.sessionId);
    call.finish(endOfStoreFailure(error));
  }
}
