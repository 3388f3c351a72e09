import type { Agent, RunOptions, Turn, TurnEvent, TurnFinished } from "@turnkeeper/agent-core";
import type { Host } from "@turnkeeper/kernel";
import { Refusal, retryLater } from "./refusal.ts";

export interface OpenCallsLimits {
  readonly callCount: number;
  readonly callCountPerSession: number;
  readonly queueLength: number;
}

export interface OpenCallsDeps {
  readonly agent: Agent;
  readonly host: Host;
}

/** A call that has ended, and when it was begun, on the monotonic clock. */
export interface EndedCall {
  readonly finished: TurnFinished;
  readonly begunAtMs: number;
}

const tooMany = (code: string, detail: string): Refusal => new Refusal(429, code, detail, { headers: retryLater });

/** The calls to `run` that have not ended: bounded before anything is stored for one more of them. */
export class OpenCalls {
  readonly #deps: OpenCallsDeps;
  readonly #limits: OpenCallsLimits;
  readonly #bySession = new Map<string, number>();
  #count = 0;
  #refusedCount = 0;
  readonly #listeners = new Set<(ended: EndedCall) => void>();

  constructor(deps: OpenCallsDeps, limits: OpenCallsLimits) {
    this.#deps = deps;
    this.#limits = limits;
  }

  /** Tells `listener` of each call that ends, in the same turn of the event loop, until disposed. */
  onEnded(listener: (ended: EndedCall) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  get count(): number {
    return this.#count;
  }

  /** How many more are taken. */
  get room(): number {
    return Math.max(0, this.#limits.callCount - this.#count);
  }

  /** Calls that were refused with 429. */
  get refusedCount(): number {
    return this.#refusedCount;
  }

  /**
   * Runs an input as the agent does, and answers once it is known to be stored, or not. Throws a `Refusal` (429) where
   * there is no room, here or in the session's queue; then nothing was stored.
   */
  async run(sessionId: string, input: string, options: RunOptions = {}): Promise<Turn> {
    try {
      this.#checkRoom(sessionId);
      return await this.#begin(sessionId, input, options);
    } catch (error) {
      if (error instanceof Refusal) this.#refusedCount++;
      throw error;
    }
  }

  async #begin(sessionId: string, input: string, options: RunOptions): Promise<Turn> {
    const begunAtMs = this.#deps.host.clock.monotonicMs();
    const { queueLength } = this.#limits;
    const turn = this.#deps.agent.run(sessionId, input, { ...options, queueLengthMax: queueLength });
    this.#count++;
    this.#bySession.set(sessionId, (this.#bySession.get(sessionId) ?? 0) + 1);
    void turn.result.then((finished) => {
      this.#ended(sessionId);
      for (const listener of this.#listeners) listener({ finished, begunAtMs });
    });
    const events = turn[Symbol.asyncIterator]();
    const first = await events.next();
    if (!first.done && first.value.type === "turn.finished" && first.value.reason === "queue_full")
      throw tooMany("session_queue_full", first.value.detail ?? "Too many inputs wait on this session; try later.");
    return { ...turn, [Symbol.asyncIterator]: () => beginningWith(first, events) };
  }

  #ended(sessionId: string): void {
    this.#count--;
    const rest = (this.#bySession.get(sessionId) ?? 1) - 1;
    if (rest > 0) this.#bySession.set(sessionId, rest);
    else this.#bySession.delete(sessionId);
  }

  #checkRoom(sessionId: string): void {
    const { callCount, callCountPerSession } = this.#limits;
    if (this.#count >= callCount) throw tooMany("too_many_calls", `${this.#count} calls wait or run here; try later.`);
    const ofSession = this.#bySession.get(sessionId) ?? 0;
    if (ofSession >= callCountPerSession)
      throw tooMany("session_queue_full", `${ofSession} calls wait or run on this session; try later.`);
  }
}

/** The events again, with the one that was read already. By hand: a generator costs four promises an event. */
function beginningWith(
  first: IteratorResult<TurnEvent, unknown>,
  rest: AsyncIterator<TurnEvent, unknown>,
): AsyncIterator<TurnEvent, unknown> {
  let unread: IteratorResult<TurnEvent, unknown> | undefined = first;
  return {
    next: () => {
      if (!unread) return rest.next();
      const told = Promise.resolve(unread);
      unread = undefined;
      return told;
    },
    return: () => rest.return?.() ?? Promise.resolve({ done: true, value: undefined }),
  };
}
