import type { EntryBody, StateStore, TakenInput } from "@turnkeeper/state-store";

interface Known {
  readonly revision: number;
  readonly bodies: EntryBody[];
}

const conversationsMax = 64;

/**
 * Conversations as this process last left them: current exactly as long as the store's revision is the one they were
 * left at, so a turn loads its transcript if and only if somebody has changed it since.
 */
export class Conversations {
  readonly #store: StateStore;
  readonly #known = new Map<string, Known>();

  constructor(store: StateStore) {
    this.#store = store;
  }

  /** The conversation up to and with `input`, for the caller to grow. `revision` is the grant's. */
  async upTo(input: TakenInput, revision: number): Promise<EntryBody[]> {
    const known = this.#known.get(input.sessionId);
    this.#known.delete(input.sessionId);
    if (known?.revision === revision)
      return [...known.bodies, { role: "user", text: input.text, inputId: input.inputId }];
    const { entries } = await this.#store.transcript.load(input.sessionId);
    return entries.map((entry) => entry.body);
  }

  /** Keeps a conversation for the next turn; `bodies` must be exactly what the store has at `revision`. */
  remember(sessionId: string, revision: number, bodies: EntryBody[]): void {
    this.#known.delete(sessionId);
    this.#known.set(sessionId, { revision, bodies });
    const [oldest] = this.#known.keys();
    if (this.#known.size > conversationsMax && oldest !== undefined) this.#known.delete(oldest);
  }
}
