import { reportDefect } from "./defect.ts";

/** Whoever watches: told each thing at once, and none of them harms what they watch. */
export class Observers<Told> {
  readonly #observers = new Set<{ readonly tell: (told: Told) => void }>();

  observe(listener: (told: Told) => void): Disposable {
    // Wrapped, so that one listener that is given twice is told twice, and let go one by one.
    const observer = { tell: listener };
    this.#observers.add(observer);
    return { [Symbol.dispose]: () => void this.#observers.delete(observer) };
  }

  tell(told: Told): void {
    for (const observer of this.#observers) {
      try {
        observer.tell(told);
      } catch (error) {
        // A turn does not fail over somebody who watches it.
        reportDefect(error);
      }
    }
  }
}
