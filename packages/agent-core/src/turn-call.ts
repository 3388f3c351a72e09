import type { Cancel, Host } from "@turnkeeper/kernel";
import { unansweredCalls } from "@turnkeeper/state-store";
import type { InterruptReason, OnBusy, SuspendedTurn, Usage } from "@turnkeeper/state-store";
import type { CallRequest } from "./call-request.ts";
import { EventQueue } from "./event-queue.ts";
import type { CallSettings } from "./call-settings.ts";
import type { HolderView, RunOutcome, TurnEvent, TurnEventBody, TurnFinished } from "./events.ts";
import { callingTurns } from "./reentry.ts";
import type { TurnChain } from "./reentry.ts";
import type { Approval } from "./tool-call.ts";
import type { ApprovalRequested } from "./open-questions.ts";
import { stampedEvent } from "./stamped-event.ts";

export interface RunOptions {
  /** The caller's idempotency key. Default: a fresh id. */
  readonly inputId?: string;
  /** What to do when the session is busy. Default `wait`. */
  readonly onBusy?: OnBusy;
  /**
   * With `steer`: cut short the model request that the session's turn has running in this agent, so that the message is
   * seen now. What had come of the answer is kept, marked; tools run on. Elsewhere it steers. Default false.
   */
  readonly redirect?: boolean;
  /** How long to wait for a busy session, in milliseconds. Default: the agent's. */
  readonly waitMs?: number;
  /**
   * How long the turn may take once it has begun, in milliseconds; then it is stopped hard, as `deadline`. Counts where
   * the turn runs for this call, not where the call follows it elsewhere. Default: as long as it moves.
   */
  readonly deadlineMs?: number;
  /**
   * What becomes of the calls that ask for approval. With `ask` the turn is suspended over them: `approval.requested`
   * tells each, and it goes on once all are answered, by `answer` or from any other process. Default `deny`.
   */
  readonly approval?: Approval;
  /**
   * What the turn is asked with beside what the agent has, whichever process runs it: it is stored with the input, and
   * of an input that is known the first ones count. At most as many bytes as an input may have.
   */
  readonly settings?: CallSettings;
  /**
   * How many inputs of the session may wait in the store already, whoever sent them; behind more the call ends as `busy`,
   * `queue_full`, and nothing is stored. Default: any number.
   */
  readonly queueLengthMax?: number;
  /** The input may be empty: the model is asked to go on from what the session has. Default false. */
  readonly goesOn?: boolean;
}

export interface StopOptions {
  /** Children too, and nothing is waited for. Default false. */
  readonly hard?: boolean;
  /** Who asks, for people. Default "caller". */
  readonly by?: string;
  /** What the turn says of why it was interrupted. Default `user-stop`. */
  readonly reason?: InterruptReason;
}

/** One call to `run`: its events, read once, and its last event as a promise that never rejects. */
export interface Turn extends AsyncIterable<TurnEvent> {
  readonly sessionId: string;
  readonly inputId: string;
  readonly result: Promise<TurnFinished>;
  /**
   * Stops exactly this call's turn, whenever it is asked: a turn that is just being granted too. While it waits, a soft
   * stop leaves the input in the queue and a hard one cancels it, unless another call waits for the same input; while it
   * runs, here or elsewhere, the turn ends as interrupted.
   */
  stop(options?: StopOptions): void;
}

/** How a call ends: `turn.finished` without what every event has. */
export interface CallEnd {
  readonly outcome: RunOutcome;
  readonly text?: string;
  readonly reason?: string;
  readonly detail?: string;
  readonly retryable?: true;
  readonly by?: string;
  readonly usage?: Usage;
}

export type StartedTurn = Omit<Extract<TurnEventBody, { readonly type: "turn.started" }>, "type">;

/** Waiting is said at once, and at once again for the turn that is followed; then after 1 s, 2 s, 4 s …, at most every 15 s. */
const firstNoticeMs = 1000;
const longestNoticeMs = 15_000;

function mergeDeltas(left: TurnEvent, right: TurnEvent): TurnEvent | undefined {
  const areText = left.type === "text.delta" && right.type === "text.delta";
  const areReasoning = left.type === "reasoning.delta" && right.type === "reasoning.delta";
  if (!areText && !areReasoning) return undefined;
  // For the price of a name behind a spread see `stampedEvent`.
  return Object.assign({}, left, { text: left.text + right.text });
}

/** What whoever is responsible for a call does about it. */
export interface CallKeeper {
  /** The caller asked for a stop, or for a harder one. */
  onStop(stop: StopOptions): void;
  /** The patience of a call that waits ran out. */
  onWaitedOut(): void;
}

type QuestionName = Pick<ApprovalRequested, "callId" | "childSessionId" | "childTurnId">;

const questionKey = ({ callId, childSessionId, childTurnId }: QuestionName): string =>
  JSON.stringify([childSessionId, childTurnId, callId]);

/** A call to `run` as the agent keeps it: where its events go, how long it waits, and what was asked of it. */
export class TurnCall {
  readonly request: CallRequest;
  readonly turn: Turn;
  /** The turns whose tools made this call. */
  readonly callers: TurnChain = callingTurns();
  readonly #host: Host;
  readonly #events = new EventQueue<TurnEvent>(mergeDeltas);
  #keeper: CallKeeper | undefined;
  #stopRequest: StopOptions | undefined;
  #hasWaitedOut = false;
  #turnId: string | undefined;
  #isStarted = false;
  #settle: (finished: TurnFinished) => void = () => {};
  #isFinished = false;
  readonly #asked = new Set<string>();
  #holder: HolderView | undefined;
  #awaits: readonly string[] = [];
  #waitingSinceMs: number | undefined;
  #noticedTurnId: string | undefined;
  #cancelNotice: Cancel = () => {};
  #cancelPatience: Cancel = () => {};

  constructor(host: Host, request: CallRequest) {
    this.#host = host;
    this.request = request;
    const result = new Promise<TurnFinished>((resolve) => {
      this.#settle = resolve;
    });
    this.turn = {
      sessionId: request.sessionId,
      inputId: request.inputId,
      result,
      stop: (options = {}) => this.#stop(options),
      [Symbol.asyncIterator]: () => this.#events[Symbol.asyncIterator](),
    };
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** The hardest stop that was asked of this call. */
  get stopRequest(): StopOptions | undefined {
    return this.#stopRequest;
  }

  /** It was refused, and its turn has not begun. */
  get isWaiting(): boolean {
    return this.#waitingSinceMs !== undefined && !this.#isStarted && !this.#isFinished;
  }

  get holder(): HolderView | undefined {
    return this.#holder;
  }

  /**
   * Makes `keeper` responsible for the call. What was asked of it before, while it was on its way from one to the next,
   * is told to the new one at once: no stop is lost between two.
   */
  keptBy(keeper: CallKeeper): void {
    this.#keeper = keeper;
    if (this.#stopRequest && !this.#isFinished) keeper.onStop(this.#stopRequest);
    if (this.#hasWaitedOut && !this.#isFinished) keeper.onWaitedOut();
  }

  #stop(stop: StopOptions): void {
    if (this.#isFinished || this.#stopRequest?.hard || (this.#stopRequest && !stop.hard)) return;
    this.#stopRequest = stop;
    this.#keeper?.onStop(stop);
  }

  #waitedOut(): void {
    this.#hasWaitedOut = true;
    this.#keeper?.onWaitedOut();
  }

  /** Tells what happens in the turn of the call, unless it has ended; a question that was told is not told again. */
  tell(body: TurnEventBody): void {
    if (this.#isUntold(body)) this.emit(body);
  }

  /** The same for an event that is stamped already. */
  pass(event: TurnEvent): void {
    if (this.#isUntold(event)) this.#events.push(event);
  }

  #isUntold(body: TurnEventBody): boolean {
    if (this.#isFinished) return false;
    if (body.type !== "approval.requested") return true;
    if (this.wasAsked(body)) return false;
    this.#asked.add(questionKey(body));
    return true;
  }

  wasAsked(question: QuestionName): boolean {
    return this.#asked.has(questionKey(question));
  }

  emit(body: TurnEventBody): TurnEvent {
    const event = stampedEvent(body, this.request.sessionId, this.#turnId, this.#host.clock.wallMs());
    this.#events.push(event);
    return event;
  }

  /** The session is held by somebody: says so at once and then ever more rarely, and starts the caller's patience. */
  waiting(holder: HolderView | undefined, suspended?: SuspendedTurn): void {
    if (this.#isFinished || this.#isStarted) return;
    this.#awaits = suspended ? unansweredCalls(suspended).map(({ callId }) => callId) : [];
    // A holder carries more than this: what others need to ask it, and nobody's business in an event.
    if (holder) this.#holder = { pid: holder.pid, host: holder.host, instanceId: holder.instanceId };
    if (this.#waitingSinceMs !== undefined) {
      // Whoever reads the call learns of the turn that it follows, and need not wait for the next notice.
      if (this.#turnId !== this.#noticedTurnId) this.#noticeAgain();
      return;
    }
    this.#waitingSinceMs = this.#host.clock.monotonicMs();
    this.#notice(firstNoticeMs);
    this.#cancelPatience = this.#host.timers.after(this.request.waitMs, () => this.#waitedOut());
  }

  #noticeAgain(): void {
    this.#cancelNotice();
    this.#notice(firstNoticeMs);
  }

  #notice(nextMs: number): void {
    this.#noticedTurnId = this.#turnId;
    const elapsedMs = Math.round(this.#host.clock.monotonicMs() - (this.#waitingSinceMs ?? 0));
    const who = this.#awaits.length > 0 ? { awaits: this.#awaits } : this.#holder ? { holder: this.#holder } : {};
    this.emit({ type: "turn.waiting", ...who, elapsedMs });
    this.#cancelNotice = this.#host.timers.after(nextMs, () => this.#notice(Math.min(nextMs * 2, longestNoticeMs)));
  }

  started(turnId: string, begun: StartedTurn): void {
    this.#stopWaiting();
    this.#isStarted = true;
    this.#turnId = turnId;
    this.emit({ type: "turn.started", ...begun });
  }

  /** The turn that answers the call, once it is known. */
  get turnId(): string | undefined {
    return this.#turnId;
  }

  /** The call follows a turn that somebody else runs; it goes on waiting. */
  following(turnId: string): void {
    this.#turnId = turnId;
  }

  finish(end: CallEnd): void {
    if (this.#isFinished) return;
    this.#stopWaiting();
    const { text = "", ...rest } = end;
    const finished = this.emit({ type: "turn.finished", text, ...rest }) as TurnFinished;
    this.#isFinished = true;
    this.#events.close();
    this.#settle(finished);
  }

  #stopWaiting(): void {
    this.#cancelNotice();
    this.#cancelPatience();
  }
}
