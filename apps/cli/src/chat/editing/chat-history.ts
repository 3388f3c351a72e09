/** What was sent before, the last one last: walked through with the arrows, searched with Ctrl-R. */

/** A thousand messages are months of a person's typing. */
export const historyCountMax = 1000;

/** Where what is sent is kept between chats. */
export interface HistoryStore {
  readonly texts: readonly string[];
  add(text: string): void;
}

export class ChatHistory {
  readonly #store: HistoryStore;
  readonly #texts: string[];

  constructor(store: HistoryStore) {
    this.#store = store;
    this.#texts = store.texts.slice(-historyCountMax);
  }

  get length(): number {
    return this.#texts.length;
  }

  at(index: number): string | undefined {
    return this.#texts[index];
  }

  /** Remembers what was sent; not twice in a row, and not what begins with a space: that is asked to be forgotten. */
  add(text: string): void {
    if (text.trim() === "" || text.startsWith(" ") || text === this.#texts.at(-1)) return;
    this.#texts.push(text);
    if (this.#texts.length > historyCountMax) this.#texts.shift();
    this.#store.add(text);
  }

  /**
   * The nearest text before `index` that holds the words; small letters stand for both. The same text is found once:
   * one that equals what stands at `index` is passed over.
   */
  search(words: string, index: number): number | undefined {
    if (words === "") return undefined;
    const isExact = words !== words.toLowerCase();
    const current = this.#texts[index];
    for (let at = Math.min(index, this.#texts.length) - 1; at >= 0; at--) {
      const text = this.#texts[at] ?? "";
      if (text !== current && (isExact ? text : text.toLowerCase()).includes(words)) return at;
    }
    return undefined;
  }
}
