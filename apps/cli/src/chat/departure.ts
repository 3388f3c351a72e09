/** Whether the chat is on its way out, and who must hear of it. Leaving twice is leaving once. */
export class Departure {
  readonly #listeners: (() => void)[] = [];
  #isLeaving = false;

  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  onLeave(listener: () => void): void {
    this.#listeners.push(listener);
  }

  leave(): void {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    for (const listener of this.#listeners) listener();
  }
}
