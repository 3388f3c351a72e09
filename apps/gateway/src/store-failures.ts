import type { Agent, TurnFinished } from "@turnkeeper/agent-core";
import type { Host } from "@turnkeeper/kernel";
import type { OpenCalls } from "./open-calls.ts";
import { isOfStore } from "./told-end.ts";

export interface StoreFailuresDeps {
  readonly agent: Pick<Agent, "observe">;
  readonly calls: Pick<OpenCalls, "onEnded">;
  readonly host: Host;
}

/** So long nothing more is sent to a store that refused; then one call finds out whether it does still. */
const recentMs = 10_000;

/** The turns, and the calls that came to none, that ended as they did because of the store. */
export class StoreFailures implements Disposable {
  readonly #host: Host;
  readonly #observers: readonly Disposable[];
  #last: { readonly code: string; readonly atMs: number } | undefined;

  /** `tell` is told of each once, with what only the log may say. */
  constructor({ agent, calls, host }: StoreFailuresDeps, tell: (failed: TurnFinished) => void) {
    this.#host = host;
    const take = (finished: TurnFinished): void => {
      const { outcome, reason } = finished;
      if (outcome === "answered") this.#last = undefined;
      if (!isOfStore(reason)) return;
      this.#last = { code: reason, atMs: host.clock.monotonicMs() };
      tell(finished);
    };
    this.#observers = [
      agent.observe((event) => event.type === "turn.finished" && event.turnId !== undefined && take(event)),
      calls.onEnded(({ finished }) => finished.turnId === undefined && take(finished)),
    ];
  }

  /** By what code the store refused lately, if no turn was answered since. */
  get recentCode(): string | undefined {
    const { code, atMs = Number.NEGATIVE_INFINITY } = this.#last ?? {};
    return this.#host.clock.monotonicMs() - atMs < recentMs ? code : undefined;
  }

  [Symbol.dispose](): void {
    for (const observer of this.#observers) observer[Symbol.dispose]();
  }
}
