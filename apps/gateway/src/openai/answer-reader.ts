import type { Turn, TurnEvent, TurnFinished } from "@turnkeeper/agent-core";
import type { JsonValue, StateStore, Usage } from "@turnkeeper/state-store";
import { unansweredCalls } from "@turnkeeper/state-store";
import { StoredTurn } from "../events/placed-event.ts";
import { toldEnd } from "../told-end.ts";

/** A call that the client is to run. */
export interface HandedCall {
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
}

/** A part of an answer. The last one is an end, or the calls that the turn waits for. */
export type AnswerPiece =
  /** Nobody knows when: the session is another's. */
  | { readonly kind: "waiting" }
  | { readonly kind: "begun" }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "calls"; readonly calls: readonly HandedCall[] }
  | { readonly kind: "end"; readonly finished: TurnFinished };

type CallRequested = Extract<TurnEvent, { type: "approval.requested" }>;

/** What somebody else is to allow is no affair of this client: a tool of the gateway's, in a turn that it may only wait for. */
const isHandedOver = (event: TurnEvent): event is CallRequested =>
  event.type === "approval.requested" && event.awaits === "result";

const counts = ["inputTokens", "cachedInputTokens", "outputTokens", "reasoningTokens"] as const;

/** Between what was said before a tool ran and what is said after it. */
const gap = "\n\n";

/**
 * Reads one turn as the answers it gives: all of its text up to its end, or up to the calls that its client is to run;
 * asked again after that it goes on behind them. One reader for each turn, read by one at a time.
 */
export class AnswerReader {
  readonly turn: Turn;
  readonly #store: StateStore;
  readonly #events: AsyncIterator<TurnEvent>;
  #usage: Usage = {};
  /** The turn ended while its calls were read. */
  #end: TurnFinished | undefined;
  #hasBegun = false;
  #hasText = false;
  #hasGap = false;
  /** Calls that were answered before the reader began: what was said before their results was told. */
  readonly #toldCallIds: ReadonlySet<string>;

  constructor(store: StateStore, turn: Turn, toldCallIds: Iterable<string> = []) {
    this.#store = store;
    this.turn = turn;
    this.#events = turn[Symbol.asyncIterator]();
    this.#toldCallIds = new Set(toldCallIds);
  }

  /** What was used since the last hand-over. */
  get usage(): Usage {
    return this.#usage;
  }

  async *pieces(): AsyncGenerator<AnswerPiece, void, undefined> {
    this.#usage = {};
    this.#hasText = false;
    this.#hasGap = false;
    for (;;) {
      const event = this.#end ?? (await this.#events.next()).value;
      if (!event) return;
      if (event.type === "turn.waiting" && !this.#hasBegun) yield { kind: "waiting" };
      else if (event.type === "turn.started") {
        this.#hasBegun = true;
        yield { kind: "begun" };
      } else if (event.type === "usage") this.#count(event);
      else if (isHandedOver(event)) {
        if (this.#toldCallIds.has(event.callId)) continue;
        if (!this.#hasBegun && event.turnId !== undefined) yield* this.#stored(event.turnId);
        yield { kind: "calls", calls: await this.#handed(event) };
        return;
      } else if (event.type === "turn.finished") {
        if (!this.#hasBegun && event.turnId !== undefined) {
          yield* this.#stored(event.turnId);
          if (event.usage) this.#count(event.usage);
        }
        yield { kind: "end", finished: toldEnd(event) };
        return;
      } else yield* this.#said(event);
    }
  }

  *#said(event: TurnEvent): Generator<AnswerPiece> {
    if (event.type === "tool.started" || event.type === "tool.finished") this.#hasGap = this.#hasText;
    else if (event.type === "reasoning.delta") yield { kind: "reasoning", text: event.text };
    else if (event.type === "text.delta") {
      if (this.#hasGap) yield { kind: "text", text: gap };
      this.#hasGap = false;
      this.#hasText = true;
      yield { kind: "text", text: event.text };
    }
  }

  /** The turn runs for another call, perhaps in another process: what it has said is in the store, step by step. */
  async *#stored(turnId: string): AsyncGenerator<AnswerPiece> {
    const { sessionId } = this.turn;
    const turn = await this.#store.turns.read(sessionId, turnId);
    if (!turn) return;
    const { entries } = await this.#store.transcript.load(sessionId, { all: true, turnId });
    const told = entries.findLastIndex(({ body }) => body.role === "tool" && this.#toldCallIds.has(body.callId));
    const stored = new StoredTurn(turn);
    for (const entry of entries.slice(told + 1)) for (const { event } of stored.of(entry)) yield* this.#said(event);
  }

  #count(usage: Usage): void {
    const sums = counts.flatMap((key) =>
      usage[key] === undefined && this.#usage[key] === undefined
        ? []
        : [[key, (this.#usage[key] ?? 0) + (usage[key] ?? 0)]],
    );
    this.#usage = Object.fromEntries(sums) as Usage;
  }

  /** Every call that the turn waits for; they are told one by one, and stored together before that. */
  async #handed(first: CallRequested): Promise<readonly HandedCall[]> {
    const calls = new Map<string, HandedCall>();
    const add = ({ callId, name, input }: CallRequested): void => void calls.set(callId, { callId, name, input });
    add(first);
    const open = await this.#openCallIds();
    while (open.some((callId) => !calls.has(callId))) {
      const next = await this.#events.next();
      if (next.done) break;
      if (next.value.type === "turn.finished") {
        this.#end = next.value;
        break;
      }
      if (isHandedOver(next.value)) add(next.value);
      else if (next.value.type === "usage") this.#count(next.value);
    }
    return [...calls.values()];
  }

  async #openCallIds(): Promise<readonly string[]> {
    const [view] = await this.#store.turns.running(this.turn.sessionId);
    const open = view?.turn.state === "suspended" ? unansweredCalls(view.turn) : [];
    return open.flatMap(({ callId, resultUntilMs }) => (resultUntilMs === undefined ? [] : [callId]));
  }
}
