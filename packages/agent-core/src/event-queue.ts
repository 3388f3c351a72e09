/**
 * A queue between one producer that never waits and one consumer that may be slow. Neighbouring events that `merge`
 * can join are joined while they wait, so a slow reader costs the memory of the text, not of its deltas.
 */
export class EventQueue<Event> implements AsyncIterable<Event> {
  #waiting: Event[] = [];
  readonly #merge: (left: Event, right: Event) => Event | undefined;
  /** Reads that came before what they are to read; then nothing waits. */
  readonly #reads: ((result: IteratorResult<Event, undefined>) => void)[] = [];
  #isClosed = false;
  #isRead = false;

  constructor(merge: (left: Event, right: Event) => Event | undefined) {
    this.#merge = merge;
  }

  push(event: Event): void {
    if (this.#isClosed) return;
    const read = this.#reads.shift();
    if (read) return read({ done: false, value: event });
    const last = this.#waiting.at(-1);
    const merged = last === undefined ? undefined : this.#merge(last, event);
    if (merged === undefined) this.#waiting.push(event);
    else this.#waiting[this.#waiting.length - 1] = merged;
  }

  close(): void {
    this.#isClosed = true;
    for (const read of this.#reads.splice(0)) read({ done: true, value: undefined });
  }

  // By hand and not by a generator, which makes four promises of each event; there is one event for each delta.
  [Symbol.asyncIterator](): AsyncIterator<Event, undefined> {
    let isReader = false;
    let batch: readonly Event[] = [];
    let index = 0;
    return {
      next: () => {
        if (!isReader && this.#isRead) return Promise.reject(new TypeError("The events of a turn can be read once."));
        isReader = this.#isRead = true;
        if (index === batch.length && this.#waiting.length > 0) {
          batch = this.#waiting;
          this.#waiting = [];
          index = 0;
        }
        if (index < batch.length) return Promise.resolve({ done: false, value: batch[index++] as Event });
        if (this.#isClosed) return Promise.resolve({ done: true, value: undefined });
        return new Promise((resolve) => void this.#reads.push(resolve));
      },
      // Nobody reads on: what comes is not kept.
      return: () => {
        this.#waiting = [];
        batch = [];
        index = 0;
        this.close();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }
}
