/**
 * A queue between one producer that never waits and one consumer that may be slow. Neighbouring events that `merge`
 * can join are joined while they wait, so a slow reader costs the memory of the text, not of its deltas.
 */
export class EventQueue<Event> implements AsyncIterable<Event> {
  readonly #waiting: Event[] = [];
  readonly #merge: (left: Event, right: Event) => Event | undefined;
  #wakeReader: (() => void) | undefined;
  #isClosed = false;
  #isRead = false;

  constructor(merge: (left: Event, right: Event) => Event | undefined) {
    this.#merge = merge;
  }

  push(event: Event): void {
    if (this.#isClosed) return;
    const last = this.#waiting.at(-1);
    const merged = last === undefined ? undefined : this.#merge(last, event);
    if (merged === undefined) this.#waiting.push(event);
    else this.#waiting[this.#waiting.length - 1] = merged;
    this.#wakeReader?.();
  }

  close(): void {
    this.#isClosed = true;
    this.#wakeReader?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Event> {
    if (this.#isRead) throw new TypeError("The events of a turn can be read once.");
    this.#isRead = true;
    for (;;) {
      while (this.#waiting.length > 0) {
        for (const event of this.#waiting.splice(0)) yield event;
      }
      // In one step with the look at what waits: an event that came while the last one was read would be lost.
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
      this.#wakeReader = undefined;
    }
  }
}
