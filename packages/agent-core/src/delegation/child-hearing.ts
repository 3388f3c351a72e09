import type { ProgressClock } from "@turnkeeper/turn-liveness";
import type { TurnEventBody } from "../events.ts";
import type { Turn } from "../turn-call.ts";

/** How long a person may take over what a child asks before its parent counts as stuck, in milliseconds. */
const approvalBoundMs = 3_600_000;

/** The parent's turn, as far as a child's call has to do with it. */
export interface HearingParent {
  readonly clock: Pick<ProgressClock, "declareWait">;
  readonly emit: (event: TurnEventBody) => void;
  /** Told that the child is suspended, and that it goes on here. */
  readonly onPause: (isPaused: boolean) => void;
}

/**
 * Reads a child's events, since what is not read would wait in memory, and asks what it asks of its parent's caller.
 * Nobody hears it any more once its parent has left it: a child holds nothing of its parent.
 */
export class ChildHearing {
  #parent: HearingParent | undefined;
  #waiting: Disposable | undefined;

  constructor(parent: HearingParent) {
    this.#parent = parent;
  }

  readonly paused = (isPaused: boolean): void => this.#parent?.onPause(isPaused);

  async read(child: Turn): Promise<void> {
    for await (const event of child) {
      if (event.type === "turn.started" || event.type === "turn.finished") this.#waitsNoMore();
      if (event.type !== "approval.requested" || !this.#parent) continue;
      const { callId, name, input } = event;
      // A grandchild's question was told by its parent in the same way.
      const { childSessionId = event.sessionId, childTurnId = event.turnId } = event;
      const { emit, clock } = this.#parent;
      this.#waiting ??= clock.declareWait({ kind: "approval", name, boundMs: approvalBoundMs });
      const turn = childTurnId === undefined ? {} : { childTurnId };
      emit({ type: "approval.requested", callId, name, input, childSessionId, ...turn });
    }
    this.#waitsNoMore();
  }

  /** The parent's turn is to be suspended: its callers hear on what is asked, and its clock waits no more. */
  parentRests(): void {
    this.#waitsNoMore();
    if (!this.#parent) return;
    const { emit } = this.#parent;
    const clock = { declareWait: () => ({ [Symbol.dispose]: () => {} }) };
    this.#parent = { emit, clock, onPause: () => {} };
  }

  /** The parent waits no more for this child. */
  end(): void {
    this.#parent = undefined;
  }

  #waitsNoMore(): void {
    this.#waiting?.[Symbol.dispose]();
    this.#waiting = undefined;
  }
}
