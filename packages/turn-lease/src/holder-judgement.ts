/**
 * Whether the holder that a waiter was refused for can be taken out of the way.
 *
 * Owns LEASE-5: a holder that is provably dead is reclaimed within one poll; one that may live never before expiry.
 *
 * The judgement only names a grant; the store takes it in one transaction that is conditional on that grant still
 * standing. So a verdict that comes late harms nobody.
 *
 *   the probe answers   what follows
 *   dead                reclaim at once
 *   unknown-here        leaked by a living process: reclaim when the next look hears the same
 *   active              wait; the store takes it when it expires
 *   unknown             wait; reclaim when token and renewal count stood still for a whole TTL on our own boot clock
 */
import type { Clock } from "@turnkeeper/kernel";
import type { AcquireRequest, LeaseView } from "@turnkeeper/state-store";
import type { ProcessPresence } from "./presence.ts";

export type Reclaim = NonNullable<AcquireRequest["reclaim"]>;

interface Sighting {
  readonly holderId: string;
  readonly fencingToken: number;
  readonly renewCount: number;
  /** Read after the row was: the standstill is never counted too long. */
  readonly sinceBootMs: number;
}

export class HolderJudgement {
  readonly #presence: Pick<ProcessPresence, "probe">;
  readonly #clock: Clock;
  #leaked: Pick<Sighting, "holderId" | "fencingToken"> | undefined;
  #sighting: Sighting | undefined;

  constructor(presence: Pick<ProcessPresence, "probe">, clock: Clock) {
    this.#presence = presence;
    this.#clock = clock;
  }

  /** What to reclaim, after a look at the lease; `readBootMs` is the boot time before that look was asked for. */
  async judge(lease: LeaseView, readBootMs: number): Promise<Reclaim | undefined> {
    const { sessionId, fencingToken, renewCount, holder } = lease;
    const grant = { sessionId, holderId: holder.holderId, fencingToken };
    const isStandstill = this.#hasStoodStill(lease, readBootMs);
    const liveness = await this.#presence.probe(holder, holder.holderId);
    const wasLeaked = this.#leaked?.holderId === grant.holderId && this.#leaked.fencingToken === fencingToken;
    this.#leaked = liveness === "unknown-here" ? grant : undefined;
    switch (liveness) {
      case "dead":
        return grant;
      case "unknown-here":
        return wasLeaked ? grant : undefined;
      case "active":
        // Alive by its own word: only its expiry counts, and a standstill begins anew should it fall silent.
        this.#sighting = undefined;
        return undefined;
      case "unknown":
        return isStandstill ? { ...grant, renewCount } : undefined;
      default:
        return liveness satisfies never;
    }
  }

  #hasStoodStill({ holder, fencingToken, renewCount, ttlMs }: LeaseView, readBootMs: number): boolean {
    const { holderId } = holder;
    const seen = this.#sighting;
    if (seen?.holderId === holderId && seen.fencingToken === fencingToken && seen.renewCount === renewCount) {
      return readBootMs - seen.sinceBootMs >= ttlMs;
    }
    this.#sighting = { holderId, fencingToken, renewCount, sinceBootMs: this.#clock.bootMs() };
    return false;
  }
}
