/** What can stand in a `DueQueue`. The queue alone writes `position`. */
export interface DueEntry {
  /** When it is due, on whatever clock its owner uses. Fixed while the entry is queued. */
  readonly dueMs: number;
  /** Breaks ties: the smaller number goes first. */
  readonly order: number;
  /** Where it stands in the heap; -1 when it is not queued. */
  position: number;
}

/**
 * Entries by slot, and within it by due time: a binary heap that knows each entry's place, so a cancelled one leaves in
 * log N steps.
 */
export class DueQueue<Entry extends DueEntry> {
  readonly #heap: Entry[] = [];
  readonly #slotOf: (entry: Entry) => number;

  /** `slotOf` says when the entry runs: at its due time or later, and always the same while it is queued. */
  constructor(slotOf: (entry: Entry) => number) {
    this.#slotOf = slotOf;
  }

  get size(): number {
    return this.#heap.length;
  }

  first(): Entry | undefined {
    return this.#heap[0];
  }

  entries(): readonly Entry[] {
    return [...this.#heap];
  }

  add(entry: Entry): void {
    this.#heap.push(entry);
    this.#rise(entry, this.#heap.length - 1);
  }

  /** Takes an entry out; nothing happens when it is not queued. */
  remove(entry: Entry): void {
    const { position } = entry;
    if (position < 0) return;
    entry.position = -1;
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    this.#rise(last, position);
    this.#sink(last, last.position);
  }

  #isBefore(left: Entry, right: Entry): boolean {
    const distance = this.#slotOf(left) - this.#slotOf(right) || left.dueMs - right.dueMs || left.order - right.order;
    return distance < 0;
  }

  #place(entry: Entry, position: number): void {
    this.#heap[position] = entry;
    entry.position = position;
  }

  #rise(entry: Entry, from: number): void {
    let position = from;
    while (position > 0) {
      const parentPosition = (position - 1) >> 1;
      const parent = this.#heap[parentPosition];
      if (parent === undefined || !this.#isBefore(entry, parent)) break;
      this.#place(parent, position);
      position = parentPosition;
    }
    this.#place(entry, position);
  }

  #sink(entry: Entry, from: number): void {
    let position = from;
    for (;;) {
      const leftPosition = 2 * position + 1;
      const left = this.#heap[leftPosition];
      if (left === undefined) break;
      const right = this.#heap[leftPosition + 1];
      const child = right !== undefined && this.#isBefore(right, left) ? right : left;
      if (!this.#isBefore(child, entry)) break;
      const childPosition = child.position;
      this.#place(child, position);
      position = childPosition;
    }
    this.#place(entry, position);
  }
}
