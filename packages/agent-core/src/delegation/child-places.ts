/** A place for a child, kept while the child is made. */
export interface ChildReservation {
  /** From 1 on; no other child of the turn has it. */
  readonly number: number;
  /** The child was made: its place is taken for good. Safe to repeat. */
  commit(): void;
  /** None was made after all: the place is free again. Nothing after `commit`; safe to repeat. */
  rollback(): void;
}

/**
 * How many children one turn may have, over its whole life: a place is reserved before anything is made, so that
 * children that are made at once cannot be more than there is room for. The number of a place is in its child's session
 * id, so whoever goes on with the turn finds in the store which are taken.
 */
export class ChildPlaces {
  readonly #max: number;
  readonly #taken: Set<number>;

  constructor(max: number, taken: Iterable<number> = []) {
    this.#max = max;
    this.#taken = new Set(taken);
  }

  /** Nothing: all are taken. */
  reserve(): ChildReservation | undefined {
    if (this.#taken.size >= this.#max) return undefined;
    let number = this.#taken.size + 1;
    while (this.#taken.has(number)) number = (number % this.#max) + 1;
    this.#taken.add(number);
    let isOpen = true;
    return {
      number,
      commit: () => void (isOpen = false),
      rollback: () => {
        if (isOpen) this.#taken.delete(number);
        isOpen = false;
      },
    };
  }
}
