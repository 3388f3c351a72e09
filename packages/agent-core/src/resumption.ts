import { unansweredCalls } from "@turnkeeper/state-store";
import type { ParentCall, StateStore, SuspendedTurn } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { awaitedTurns } from "./open-questions.ts";

export interface ResumptionDeps {
  readonly store: StateStore;
  readonly presence: ProcessPresence;
  /** Whether this process can go on with a suspended turn: it has the tools that were asked about. */
  readonly canResume: (turn: SuspendedTurn) => boolean;
  /** Competes here for whatever the session has to run. */
  readonly runHere: (sessionId: string) => void;
}

/**
 * Sees to it that suspended turns go on once nothing that they wait for is open: in the process that asked, which is woken
 * where it lives, else here.
 */
export class Resumption {
  readonly #deps: ResumptionDeps;

  constructor(deps: ResumptionDeps) {
    this.#deps = deps;
  }

  /** Somebody waits behind a suspended turn: the subagents that it waits for, and theirs, go on where they are answered. */
  async ofChildren(turn: SuspendedTurn): Promise<void> {
    for (const child of await awaitedTurns(this.#deps.store, turn)) {
      if (unansweredCalls(child).length > 0) await this.ofChildren(child);
      else await this.#goOn(child);
    }
  }

  /** A child has ended: its parent's turn goes on, if it waited for nothing else. */
  async ofParent({ sessionId, turnId }: ParentCall): Promise<void> {
    const [view] = await this.#deps.store.turns.running(sessionId);
    const turn = view?.turn;
    if (turn?.turnId !== turnId || turn.state !== "suspended" || unansweredCalls(turn).length > 0) return;
    await this.#goOn(turn);
  }

  async #goOn(turn: SuspendedTurn): Promise<void> {
    const { presence, canResume, runHere } = this.#deps;
    if (canResume(turn) && (await presence.wake(turn.holder, turn.sessionId)) !== "woken") runHere(turn.sessionId);
  }
}
