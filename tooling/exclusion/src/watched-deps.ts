import { systemHost } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { LeaseStore } from "@turnkeeper/state-store";
import type { Place } from "./ground.ts";
import { nowNs } from "./history.ts";
import type { Fact } from "./history.ts";

/** The host as the lease sees it, and when that last began to read the boot clock, by which it judges itself. */
export class WatchedHost implements Host {
  readonly timers: Host["timers"] = systemHost.timers;
  readonly random: Host["random"] = systemHost.random;
  readonly clock: Host["clock"];
  lastReadNs = 0;

  /** As a host of its own: another boot, and both clocks off by so much. */
  constructor(as: Place["host"]) {
    const { clock } = systemHost;
    const { name, clockOffMs = 0 } = as ?? {};
    this.clock = {
      ...clock,
      ...(name === undefined ? {} : { bootId: `boot of ${name}` }),
      wallMs: () => clock.wallMs() + clockOffMs,
      bootMs: () => {
        this.lastReadNs = nowNs();
        return clock.bootMs() + clockOffMs;
      },
    };
  }
}

/** The leases of the store, with a note of when each request was sent. */
export class WatchedLeases implements LeaseStore {
  readonly #leases: LeaseStore;
  readonly #record: (fact: Fact) => void;
  acquireSentNs = 0;

  constructor(leases: LeaseStore, record: (fact: Fact) => void) {
    this.#leases = leases;
    this.#record = record;
  }

  acquire(request: Parameters<LeaseStore["acquire"]>[0]): ReturnType<LeaseStore["acquire"]> {
    this.acquireSentNs = nowNs();
    return this.#leases.acquire(request);
  }

  async renew(grant: Parameters<LeaseStore["renew"]>[0], ttlMs: number): ReturnType<LeaseStore["renew"]> {
    const askedNs = nowNs();
    const answer = await this.#leases.renew(grant, ttlMs);
    if (answer.kind === "renewed") this.#record({ event: "renewed", fencingToken: grant.fencingToken, askedNs });
    return answer;
  }

  release(grant: Parameters<LeaseStore["release"]>[0]): ReturnType<LeaseStore["release"]> {
    return this.#leases.release(grant);
  }

  read(sessionId: string): ReturnType<LeaseStore["read"]> {
    return this.#leases.read(sessionId);
  }
}
