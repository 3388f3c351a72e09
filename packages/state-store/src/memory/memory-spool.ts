import type { SpoolStep, SpoolStore, SpoolView } from "../spool.ts";
import type { MemoryState } from "./memory-state.ts";

export class MemorySpool implements SpoolStore {
  readonly #state: MemoryState;

  constructor(state: MemoryState) {
    this.#state = state;
  }

  async keep(step: SpoolStep): Promise<{ readonly place: string }> {
    const { sessionId } = step.grant;
    const steps = this.#state.spool.get(sessionId) ?? [];
    this.#state.spool.set(sessionId, [...steps, { ...structuredClone(step), keptAtMs: this.#state.wallMs() }]);
    return { place: "memory" };
  }

  async waiting(sessionId?: string): Promise<readonly SpoolView[]> {
    return [...this.#state.spool]
      .filter(([id]) => sessionId === undefined || sessionId === id)
      .map(([id, steps]) => ({
        sessionId: id,
        stepCount: steps.length,
        turnIds: [...new Set(steps.map(({ turnId }) => turnId))].toSorted(),
        damagedCount: 0,
        place: "memory",
      }))
      .toSorted((left, right) => (left.sessionId < right.sessionId ? -1 : 1));
  }
}
