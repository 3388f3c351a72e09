import type { Agent, TurnEvent } from "@turnkeeper/agent-core";
import type { PlacedEvent } from "./placed-event.ts";
import { startOf, TurnProgress } from "./turn-place.ts";

/** A turn that runs in this process, and what it said that is not stored yet. */
interface LiveTurn {
  readonly turnId: string;
  readonly fencingToken: number;
  readonly progress: TurnProgress;
  unstored: PlacedEvent[];
}

/** Events before which everything of the turn was stored. */
const storedBefore: ReadonlySet<TurnEvent["type"]> = new Set<TurnEvent["type"]>([
  "turn.started",
  "tool.started",
  "tool.finished",
  "steer.delivered",
  "model.retry",
]);

/** Neighbouring deltas of one kind are one: a reader that comes late costs the text, not its pieces. */
function joined(last: PlacedEvent | undefined, next: PlacedEvent): PlacedEvent | undefined {
  const [before, after] = [last?.event, next.event];
  if (last === undefined || before === undefined) return undefined;
  if (before.type === "text.delta" && after.type === "text.delta")
    return { ...last, event: { ...before, text: before.text + after.text } };
  if (before.type === "reasoning.delta" && after.type === "reasoning.delta")
    return { ...last, event: { ...before, text: before.text + after.text } };
  return undefined;
}

/** Whoever listens to one session: what is said from now on, after what was said and is not stored yet. */
export interface LiveListener {
  take(placed: PlacedEvent): void;
}

/** The turns that run in this process, event by event, for whoever listens to their sessions. */
export class LiveTurns implements Disposable {
  readonly #running = new Map<string, LiveTurn>();
  readonly #listeners = new Map<string, Set<LiveListener>>();
  readonly #observer: Disposable;

  constructor(agent: Pick<Agent, "observe">) {
    this.#observer = agent.observe((event) => this.#observe(event));
  }

  /** Whether this turn, or any of the session, runs in this process: then nothing needs to be looked up to know of it. */
  isLive(sessionId: string, turnId?: string): boolean {
    const turn = this.#running.get(sessionId);
    return turn !== undefined && (turnId === undefined || turn.turnId === turnId);
  }

  listen(sessionId: string, listener: LiveListener): Disposable {
    const listeners = this.#listeners.get(sessionId) ?? new Set();
    this.#listeners.set(sessionId, listeners.add(listener));
    for (const placed of this.#running.get(sessionId)?.unstored ?? []) listener.take(placed);
    return {
      [Symbol.dispose]: () => {
        listeners.delete(listener);
        if (listeners.size === 0 && this.#listeners.get(sessionId) === listeners) this.#listeners.delete(sessionId);
      },
    };
  }

  #observe(event: TurnEvent): void {
    const { sessionId, turnId } = event;
    if (turnId === undefined) return;
    if (event.type === "turn.started") {
      const progress = new TurnProgress(startOf(turnId));
      this.#running.set(sessionId, { turnId, fencingToken: event.fencingToken, progress, unstored: [] });
    }
    const turn = this.#running.get(sessionId);
    if (turn?.turnId !== turnId) return;
    const placed = this.#place(turn, event);
    if (event.type === "turn.finished") this.#running.delete(sessionId);
    for (const listener of this.#listeners.get(sessionId) ?? []) listener.take(placed);
  }

  #place(turn: LiveTurn, event: TurnEvent): PlacedEvent {
    const before = turn.progress.place;
    const after = turn.progress.tell(event);
    // A retry takes back what came of the attempt before.
    const { textLength, reasoningLength } = event.type === "model.retry" ? after : before;
    const { turnId, fencingToken } = turn;
    const placed = { event, turnId, fencingToken, textBefore: textLength, reasoningBefore: reasoningLength };
    if (storedBefore.has(event.type)) turn.unstored = [];
    if (event.type === "text.delta" || event.type === "reasoning.delta") {
      const last = joined(turn.unstored.at(-1), placed);
      if (last) turn.unstored[turn.unstored.length - 1] = last;
      else turn.unstored.push(placed);
    }
    return placed;
  }

  [Symbol.dispose](): void {
    this.#observer[Symbol.dispose]();
    this.#listeners.clear();
    this.#running.clear();
  }
}
