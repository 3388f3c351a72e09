import type { Approval, Turn, TurnFinished } from "@turnkeeper/agent-core";
import { systemHost } from "@turnkeeper/kernel";
import type { OnBusy } from "@turnkeeper/state-store";
import type { Seat, SeatedAgent } from "../agent-set-up.ts";
import type { Screen } from "../display/screen.ts";
import { showTurn } from "../display/turn-view.ts";
import type { TurnView } from "../display/turn-view.ts";
import { runOptionsOf } from "../turn-flags.ts";
import type { TurnFlags } from "../turn-flags.ts";

export interface ConversationDeps {
  readonly screen: Screen;
  readonly seat: Seat;
  readonly approval: Approval;
  readonly flags: TurnFlags;
  /** How a call is shown. */
  readonly view: (options: { readonly isTold: boolean }) => TurnView;
  /** Another turn begins: what was pressed before was meant for the one before. */
  readonly onCall: () => void;
  /** A call was shown to its end. */
  readonly onFinished: (finished: TurnFinished) => Promise<void>;
}

/** A message whose call is over and whose input is not. */
interface PendingMessage {
  readonly inputId: string;
  readonly text: string;
  readonly sessionId: string;
}

/**
 * One session as a chat sees it: messages in, answers shown one after another. A message that comes while a turn runs
 * steers it (or what `--on-busy` says), and is followed to its end: if the turn did not take it, it gets its own.
 */
export class Conversation {
  readonly #deps: ConversationDeps;
  #seated: SeatedAgent;
  /** `--input-id` names one message: the first. */
  #firstInputId: string | undefined;
  sessionId: string;
  /** The call whose answer is being shown. */
  #current: Turn | undefined;
  readonly #calls: { readonly turn: Turn; readonly isTold: boolean }[] = [];
  /** Handed to a turn that was running. */
  #handedOver: PendingMessage[] = [];
  /** No longer waited for; they stay in the queue. */
  #left: PendingMessage[] = [];
  #showing: Promise<void> | undefined;
  #lastFinished: TurnFinished | undefined;
  /** Turns whose answers have been shown since something was handed over. */
  readonly #shownTurns = new Set<string>();

  constructor(deps: ConversationDeps, seated: SeatedAgent, sessionId: string) {
    this.#deps = deps;
    this.#firstInputId = deps.flags.inputId;
    this.#seated = seated;
    this.sessionId = sessionId;
  }

  get seated(): SeatedAgent {
    return this.#seated;
  }

  /** Another model from the next turn on. */
  set seated(seated: SeatedAgent) {
    this.#seated = seated;
  }

  get isRunning(): boolean {
    return this.#showing !== undefined;
  }

  /** How the last call came out, for the exit code of a chat that nobody watches. */
  get lastFinished(): TurnFinished | undefined {
    return this.#lastFinished;
  }

  /** Throws what `agent.run` throws of a message that cannot be sent; nothing is stored then. */
  send(text: string, policy?: OnBusy): void {
    const { flags, approval } = this.#deps;
    const onBusy = policy ?? (this.isRunning ? (flags.onBusy ?? "steer") : flags.onBusy);
    const inputId = this.#firstInputId ?? systemHost.random.id();
    this.#firstInputId = undefined;
    const { sessionId } = this;
    this.#returnToLeft(sessionId);
    const turn = this.#seated.agent.run(sessionId, text, {
      ...runOptionsOf(flags),
      ...(onBusy ? { onBusy } : {}),
      inputId,
      approval,
    });
    void turn.result.then(({ outcome, reason }) => {
      if (outcome !== "queued") return;
      // One that merely stopped waiting has a reason, and tells it itself.
      if (reason === undefined) this.#handOver({ inputId, text, sessionId });
      else this.#left.push({ inputId, text, sessionId });
    });
    this.#show(turn, onBusy === "steer" || onBusy === "queue");
  }

  /** A turn of this session that waits for approval is shown, and what it asks is asked here, where somebody can be asked. */
  async returnToSuspended(): Promise<void> {
    if (this.#deps.approval !== "ask") return;
    const { store } = this.#deps.seat;
    const [view] = await store.turns.running(this.sessionId);
    if (view?.turn.state !== "suspended") return;
    const { turnId } = view.turn;
    const records = await store.sessions.records(this.sessionId, { withoutEntries: true });
    const message = records?.inputs.find(
      (input) => input.state === "taken" && input.turnId === turnId && input.child === undefined,
    );
    if (message) this.#wait({ inputId: message.inputId, text: message.text, sessionId: this.sessionId });
  }

  /** Summarises the session now, shown and stopped like a turn. */
  compact(): void {
    this.#show(this.#seated.agent.compact(this.sessionId), false);
  }

  /** Stops the turn that is shown; answers whether there is one. */
  stop(options: { readonly hard: boolean; readonly by: string }): boolean {
    this.#current?.stop(options);
    return this.#current !== undefined;
  }

  /** Resolves when every answer has been shown. */
  async settled(): Promise<void> {
    while (this.#showing) await this.#showing;
  }

  /**
   * What stands before a new message in its session's queue is run first, and is shown here: nothing of this person's
   * runs unseen. Where others have answered it meanwhile, their answer is.
   */
  #returnToLeft(sessionId: string): void {
    const messages = this.#left.filter((message) => message.sessionId === sessionId);
    this.#left = this.#left.filter((message) => message.sessionId !== sessionId);
    for (const message of messages) this.#wait(message);
  }

  #wait({ inputId, text, sessionId }: PendingMessage): void {
    const { approval } = this.#deps;
    const turn = this.#seated.agent.run(sessionId, text, { inputId, onBusy: "wait", approval });
    void turn.result.then(({ outcome, reason }) => {
      if (outcome === "queued" && reason !== undefined) this.#left.push({ inputId, text, sessionId });
    });
    this.#show(turn, true);
  }

  #handOver(message: PendingMessage): void {
    this.#handedOver.push(message);
    const { screen } = this.#deps;
    screen.tell(
      "→ handed on: the running turn takes it at its next step, or it gets a turn of its own",
      screen.noteStyle.dim,
    );
  }

  #show(turn: Turn, isTold: boolean): void {
    this.#calls.push({ turn, isTold });
    this.#showing ??= this.#showAll();
  }

  async #showAll(): Promise<void> {
    try {
      for (let call = this.#calls.shift(); call; call = this.#calls.shift()) {
        this.#current = call.turn;
        this.#deps.onCall();
        const finished = await showTurn(call.turn, this.#deps.view({ isTold: call.isTold }));
        this.#current = undefined;
        await this.#deps.onFinished(finished);
        if (finished.outcome !== "queued") this.#lastFinished = finished;
        if (finished.turnId !== undefined) this.#shownTurns.add(finished.turnId);
        if (this.#calls.length === 0) await this.#followHandedOver();
      }
    } finally {
      // In one step with the last look at the calls: one that is sent from here on starts a new show.
      this.#current = undefined;
      this.#showing = undefined;
    }
  }

  /** Messages that the turn did not take before it ended get their own, and their answers are shown. */
  async #followHandedOver(): Promise<void> {
    const { seat } = this.#deps;
    const messages = this.#handedOver;
    this.#handedOver = [];
    for (const { inputId, text, sessionId } of messages) {
      const input = await seat.store.inbox.read(sessionId, inputId);
      const turnId = input?.state === "pending" ? undefined : input?.turnId;
      if (!input || (turnId !== undefined && this.#shownTurns.has(turnId))) continue;
      this.#wait({ inputId, text, sessionId });
    }
    this.#shownTurns.clear();
  }
}
