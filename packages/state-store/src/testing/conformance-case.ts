import type { VirtualHost } from "@turnkeeper/kernel/testing";
import type { LeaseStore } from "../lease.ts";
import type { StateStore } from "../state-store.ts";

/** The part of a store that the `LEASE-` cases use, so that an author of `LeaseStore` alone can run them. */
export interface LeaseOnly {
  readonly leases: LeaseStore;
}

/** What an adapter hands to a case: a store that judges time by `host`. */
export interface ConformanceHarness<Store = StateStore> {
  readonly host: VirtualHost;
  /** Opens a fresh, empty store; `reopen` then speaks of this one. */
  readonly open: () => Promise<Store>;
  /** The process crashes (nothing is closed, flushed or released) and another opens the same durable data. */
  readonly reopen: () => Promise<Store>;
}

/**
 * One rule of the contract, as a script that throws an `AssertionError` where a store breaks it. Uses `node:assert`
 * only: loop over the cases with any test runner.
 */
export interface ConformanceCase<Store = StateStore> {
  /** Begins with the invariant it serves, else with the concept: `LEASE-1b`, `QUEUE-NEWCOMER`. Unique. */
  readonly id: string;
  readonly title: string;
  /**
   * `boot-clock`: the case suspends or reboots the host, so it says nothing of a store with a clock of its own (a
   * database server's); such an adapter skips it, with that reason.
   */
  readonly needs?: "boot-clock";
  readonly run: (harness: ConformanceHarness<Store>) => Promise<void>;
}
