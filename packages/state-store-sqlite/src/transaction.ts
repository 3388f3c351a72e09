import type { Clock } from "@turnkeeper/kernel";
import { nowOf } from "@turnkeeper/state-store";
import type { BootInstant } from "@turnkeeper/state-store";
import type { Connection, Durability } from "./connection.ts";

/** Thrown inside a transaction that turns out to write more than it was begun for; it is run again at `full`. */
export class DurabilityRaised extends Error {}

/**
 * What the body of a transaction works with: the rows, and one instant for all that it writes. A body is synchronous
 * and changes nothing but rows, so it may be run again.
 */
export class Transaction {
  readonly rows: Connection;
  readonly #clock: Clock;
  readonly #durability: Durability;
  #now: BootInstant | undefined;
  #atMs: number | undefined;

  constructor(rows: Connection, clock: Clock, durability: Durability) {
    this.rows = rows;
    this.#clock = clock;
    this.#durability = durability;
  }

  /** The store's clock, by which leases expire. Read once, under the lock. */
  get now(): BootInstant {
    return (this.#now ??= nowOf(this.#clock));
  }

  /** Wall time, for people. */
  get atMs(): number {
    return (this.#atMs ??= this.#clock.wallMs());
  }

  /** From here on turn data is written: the commit must wait for the disk. */
  requireFull(): void {
    if (this.#durability !== "full") throw new DurabilityRaised();
  }
}
