import type { Agent, TurnEvent } from "@turnkeeper/agent-core";
import type { StateStore } from "@turnkeeper/state-store";
import { suspendedPlace } from "./placed-event.ts";
import type { PlacedEvent } from "./placed-event.ts";
import { startOf, TurnProgress } from "./turn-place.ts";
import { toldEnd } from "../told-end.ts";

/** A turn that runs in this process, and what it said that is not stored yet. */
interface LiveTurn {
  readonly turnId: string;
  readonly fencingToken: number;
  /** Nothing until it is known how far a turn had come that goes on here. */
  progress: TurnProgress | undefined;
  /** What it said before that was known. */
  readonly unplaced: TurnEvent[];
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
  const areText = before.type === "text.delta" && after.type === "text.delta";
  const areReasoning = before.type === "reasoning.delta" && after.type === "reasoning.delta";
  if (!areText && !areReasoning) return undefined;
  // A name behind a spread takes V8 2 µs, and each delta comes by here.
  const event: TurnEvent = Object.assign({}, before, { text: before.text + after.text });
  return Object.assign({}, last, { event });
}

/** The turn lets go of its session until its calls are answered; a child's question alone leaves its parent's turn running. */
export const suspends = (event: TurnEvent): boolean =>
  event.type === "approval.requested"
    ? event.childSessionId === undefined
    : event.type === "turn.waiting" && event.awaits !== undefined && !event.keepsSession;

/** Whoever listens to one session: what is said from now on, after what was said and is not stored yet. */
export interface LiveListener {
  take(placed: PlacedEvent): void;
  /** The session's turn is not followed here any more: what there is of it is in the store. */
  look(): void;
}

export interface LiveTurnsDeps {
  readonly agent: Pick<Agent, "observe">;
  readonly store: StateStore;
}

/**
 * The turns that run in this process, event by event, for whoever listens to their sessions.
 *
 *   | a turn                  | is live here                                          |
 *   | ----------------------- | ----------------------------------------------------- |
 *   | begins                  | from its first event on                               |
 *   | is suspended            | no more: the store has all of it, and what it asks    |
 *   | goes on here            | once the store has said how far it had come           |
 *   | ends                    | no more                                               |
 */
export class LiveTurns implements Disposable {
  readonly #store: StateStore;
  readonly #running = new Map<string, LiveTurn>();
  readonly #listeners = new Map<string, Set<LiveListener>>();
  readonly #observer: Disposable;

  constructor({ agent, store }: LiveTurnsDeps) {
    this.#store = store;
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

  #observe(observed: TurnEvent): void {
    const event = observed.type === "turn.finished" ? toldEnd(observed) : observed;
    const { sessionId, turnId } = event;
    if (turnId === undefined) return;
    if (event.type === "turn.started") this.#begin(turnId, event);
    const turn = this.#running.get(sessionId);
    if (turn?.turnId !== turnId) return;
    if (suspends(event)) return this.#leaveToStore(sessionId);
    if (turn.progress) this.#tell(turn, turn.progress, event);
    else turn.unplaced.push(event);
  }

  #begin(turnId: string, started: Extract<TurnEvent, { type: "turn.started" }>): void {
    const { sessionId, fencingToken, resumes } = started;
    const progress = resumes ? undefined : new TurnProgress(startOf(turnId));
    const turn: LiveTurn = { turnId, fencingToken, progress, unplaced: [], unstored: [] };
    this.#running.set(sessionId, turn);
    if (resumes) void this.#goOn(sessionId, turn);
  }

  /** Never rejects. */
  async #goOn(sessionId: string, turn: LiveTurn): Promise<void> {
    // A store that fails is met by the readers too, who are sent to it and tell it.
    const place = await suspendedPlace(this.#store, sessionId, turn.turnId).catch(() => undefined);
    if (this.#running.get(sessionId) !== turn) return;
    if (!place) return this.#leaveToStore(sessionId);
    const progress = (turn.progress = new TurnProgress(place));
    for (const event of turn.unplaced.splice(0)) this.#tell(turn, progress, event);
  }

  #leaveToStore(sessionId: string): void {
    this.#running.delete(sessionId);
    for (const listener of this.#listeners.get(sessionId) ?? []) listener.look();
  }

  #tell(turn: LiveTurn, progress: TurnProgress, event: TurnEvent): void {
    const { sessionId } = event;
    const placed = this.#place(turn, progress, event);
    if (event.type === "turn.finished") this.#running.delete(sessionId);
    for (const listener of this.#listeners.get(sessionId) ?? []) listener.take(placed);
  }

  #place(turn: LiveTurn, progress: TurnProgress, event: TurnEvent): PlacedEvent {
    const before = progress.place;
    const after = progress.tell(event);
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
