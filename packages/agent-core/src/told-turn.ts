import type { Host } from "@turnkeeper/kernel";
import type { TurnInterrupt } from "@turnkeeper/interrupt";
import { unansweredCalls } from "@turnkeeper/state-store";
import type { SuspendedTurn } from "@turnkeeper/state-store";
import type { TurnEvent, TurnEventBody } from "./events.ts";
import { stampedEvent } from "./stamped-event.ts";
import type { StartedTurn, TurnCall } from "./turn-call.ts";
import type { CallQuestion, TurnEnding } from "./turn-ending.ts";

export interface ToldTurnDeps {
  readonly host: Host;
  /** Told everything that happens in a turn, once, whether anybody called for it or not. */
  observe(event: TurnEvent): void;
}

/** What the callers of a turn and its observers are told of it while it runs here: until it ends, or is suspended. */
export class ToldTurn {
  readonly #deps: ToldTurnDeps;
  readonly #sessionId: string;
  readonly #turnId: string;
  readonly #calls: readonly TurnCall[];
  #isOver = false;

  constructor(
    deps: ToldTurnDeps,
    { sessionId, turnId }: { readonly sessionId: string; readonly turnId: string },
    calls: readonly TurnCall[],
  ) {
    this.#deps = deps;
    this.#sessionId = sessionId;
    this.#turnId = turnId;
    this.#calls = calls;
  }

  /** A subagent's questions may come after the turn was suspended: they are for whoever called, and for no observer. */
  readonly emit = (body: TurnEventBody): void => {
    const event = this.#stamped(body);
    for (const call of this.#calls) call.pass(event);
    if (!this.#isOver) this.#deps.observe(event);
  };

  /** The calls are kept by the turn now: what was asked of them meanwhile stops it. */
  started(interrupt: TurnInterrupt, begun: StartedTurn, traceParent: string | undefined): void {
    for (const call of this.#calls) {
      call.started(this.#turnId, begun);
      call.request.onPause?.(false);
      call.keptBy({
        onStop: ({ hard = false, by = "caller", reason = "user-stop" }) =>
          void interrupt.interrupt({ hard, reason, by }),
        onWaitedOut: () => {},
      });
    }
    const trace = traceParent === undefined ? {} : { traceParent };
    this.#deps.observe(this.#stamped({ type: "turn.started", ...begun, ...trace }));
  }

  suspended(turn: SuspendedTurn, asks: readonly CallQuestion[]): void {
    for (const ask of asks) this.emit({ type: "approval.requested", ...ask });
    const open = unansweredCalls(turn);
    // What a subagent asks was told when it asked; that its parent rests too is told by nothing else.
    if (open.some(({ child }) => child))
      this.emit({ type: "turn.waiting", awaits: open.map(({ callId }) => callId), elapsedMs: 0 });
    this.#isOver = true;
    for (const call of this.#calls) call.request.onPause?.(true);
  }

  /** Somebody else has it: what happens in it is told from there. */
  goesOn(): void {
    this.#isOver = true;
  }

  ended({ entries: _entries, stop, ...ending }: TurnEnding): void {
    this.#isOver = true;
    const end = { ...ending, ...(stop ? { by: stop.by } : {}) };
    for (const call of this.#calls) call.finish(end);
    this.#deps.observe(this.#stamped({ type: "turn.finished", text: "", ...end }));
  }

  #stamped(body: TurnEventBody): TurnEvent {
    return stampedEvent(body, this.#sessionId, this.#turnId, this.#deps.host.clock.wallMs());
  }
}
