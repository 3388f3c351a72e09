/** Places for children, kept while they are made. */
export interface ChildReservation {
  /** How many of those that were asked for there is room for. */
  readonly count: number;
  /** They were made: their places are taken for good. Safe to repeat. */
  commit(): void;
  /** None was made after all: the places are free again. Nothing after `commit`; safe to repeat. */
  rollback(): void;
}

/**
 * How many children one turn may have, over its whole life: a place is reserved before anything is made, so that
 * children that are made at once cannot be more than there is room for.
 */
export class ChildPlaces {
  readonly #max: number;
  #takenCount = 0;

  constructor(max: number) {
    this.#max = max;
  }

  reserve(wantedCount: number): ChildReservation {
    const count = Math.min(wantedCount, Math.max(0, this.#max - this.#takenCount));
    this.#takenCount += count;
    let isOpen = true;
    return {
      count,
      commit: () => void (isOpen = false),
      rollback: () => {
        if (isOpen) this.#takenCount -= count;
        isOpen = false;
      },
    };
  }
}
