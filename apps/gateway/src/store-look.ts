import type { Timers } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { Refusal, retryLater } from "./refusal.ts";

/** What asks whether a gateway is ready waits for a second or so itself; a store waits for its server for far longer. */
const patienceMs = 1000;

/** Whether the store answers, for probes: however many of them wait, it is asked once. */
export class StoreLook {
  readonly #store: StateStore;
  readonly #timers: Timers;
  #looking: Promise<void> | undefined;

  constructor(store: StateStore, timers: Timers) {
    this.#store = store;
    this.#timers = timers;
  }

  /** Rejects with the store's refusal, or with 503 `store_silent` where it has not answered by then. */
  async answers(): Promise<void> {
    const looking = (this.#looking ??= this.#look().finally(() => (this.#looking = undefined)));
    await new Promise<void>((resolve, reject) => {
      const cancel = this.#timers.after(patienceMs, () => {
        const detail = `The store has not answered for ${patienceMs} ms.`;
        reject(new Refusal(503, "store_silent", detail, { headers: retryLater }));
      });
      looking.then(resolve, reject).finally(cancel);
    });
  }

  async #look(): Promise<void> {
    await this.#store.check();
    await this.#store.sessions.list({ limit: 1 });
  }
}
