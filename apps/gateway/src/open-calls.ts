import type { Agent, RunOptions, Turn, TurnFinished } from "@turnkeeper/agent-core";
import type { Host } from "@turnkeeper/kernel";
import { wantsTurn } from "@turnkeeper/state-store";
import type { OnBusy, StateStore } from "@turnkeeper/state-store";
import { Refusal, retryLater } from "./refusal.ts";

export interface OpenCallsLimits {
  readonly callCount: number;
  readonly callCountPerSession: number;
  readonly queueLength: number;
}

export interface OpenCallsDeps {
  readonly agent: Agent;
  readonly store: StateStore;
  readonly host: Host;
}

/** A call that has ended, and when it was begun, on the monotonic clock. */
export interface EndedCall {
  readonly finished: TurnFinished;
  readonly begunAtMs: number;
}

const tooMany = (code: string, detail: string): Refusal => new Refusal(429, code, detail, { headers: retryLater });

/** Policies whose calls do not stay: what they leave behind is the store's queue. */
const leaves: ReadonlySet<OnBusy> = new Set<OnBusy>(["queue", "steer"]);

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

  /** Runs an input as the agent does. Throws a `Refusal` (429) where there is no room; then nothing was stored. */
  async run(sessionId: string, input: string, options: RunOptions = {}): Promise<Turn> {
    try {
      this.#checkRoom(sessionId);
      // A session that nobody else waits for here costs no look at its queue.
      const mayPileUp = leaves.has(options.onBusy ?? "wait") || this.#bySession.has(sessionId);
      if (mayPileUp) await this.#checkQueue(sessionId);
      this.#checkRoom(sessionId);
    } catch (error) {
      this.#refusedCount++;
      throw error;
    }
    const begunAtMs = this.#deps.host.clock.monotonicMs();
    const turn = this.#deps.agent.run(sessionId, input, options);
    this.#count++;
    this.#bySession.set(sessionId, (this.#bySession.get(sessionId) ?? 0) + 1);
    void turn.result.then((finished) => {
      this.#ended(sessionId);
      for (const listener of this.#listeners) listener({ finished, begunAtMs });
    });
    return turn;
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

  async #checkQueue(sessionId: string): Promise<void> {
    const pending = await this.#deps.store.inbox.pending(sessionId);
    // What children tell of their ends waits for the next turn and for nobody's room.
    const waitingCount = pending.filter(wantsTurn).length;
    if (waitingCount >= this.#limits.queueLength)
      throw tooMany("session_queue_full", `${waitingCount} inputs wait on this session; try later.`);
  }
}
