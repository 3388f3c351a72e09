import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "@turnkeeper/kernel";
import type { LeaseStore } from "@turnkeeper/state-store";
import { leaseBounds, sessionId } from "./bounds.ts";
import type { Crew, Member } from "./crew.ts";

/** Between two acts; a turn takes about as long. */
const gapMsMax = 250;
/** How many may stand still at once: each is waited for half a second when its turn in the queue comes. */
const stoppedMax = 3;
/** How many may be missing: starting a process is the dearest thing here. */
const missingMax = 2;
/** How often an act means the holder: what matters happens to it. */
const holderShare = 0.75;
/** A stop that an unexpired lease survives. */
const shortStopMsMax = 400;
/** How far beyond the TTL a long stop goes: sometimes the holder revives its lease, mostly somebody was there first. */
const beyondTtlMsMax = 2_000;

/** What an act is, as shares of all acts; the rest leaves everybody alone. */
export interface FaultMix {
  readonly kill: number;
  readonly shortStop: number;
  readonly longStop: number;
}

/** What happens to the crew, drawn from one seed; what the machine makes of it is its own affair. */
export class Faults {
  readonly #crew: Crew;
  readonly #leases: Pick<LeaseStore, "read">;
  readonly #random: Pick<Random, "unit">;
  readonly #resumes = new Map<Member, number>();
  readonly #processCount: number;
  readonly #mix: FaultMix;

  constructor(
    crew: Crew,
    leases: Pick<LeaseStore, "read">,
    random: Pick<Random, "unit">,
    options: { readonly processCount: number; readonly mix: FaultMix },
  ) {
    this.#crew = crew;
    this.#leases = leases;
    this.#random = random;
    this.#processCount = options.processCount;
    this.#mix = options.mix;
  }

  /** One act: somebody is killed and replaced, stopped for a while, or left alone; whose time has come goes on. */
  async act(): Promise<void> {
    const unit = (): number => this.#random.unit();
    // Drawn before anything is looked at, so that one seed means one list of acts.
    const [gapMs, what, who, whether] = [unit() * gapMsMax, unit(), unit(), unit()];
    await pause(gapMs);
    this.#resumeDue();
    const victim = await this.#victim(who, whether);
    if (!victim) return;
    const { kill, shortStop, longStop } = this.#mix;
    if (what < kill) this.#kill(victim);
    else if (what < kill + shortStop) this.#stop(victim, unit() * shortStopMsMax);
    else if (what < kill + shortStop + longStop) this.#stop(victim, leaseBounds.ttlMs + unit() * beyondTtlMsMax);
  }

  #resumeDue(): void {
    for (const [member, atMs] of this.#resumes) {
      if (atMs > performance.now()) continue;
      this.#resumes.delete(member);
      this.#crew.send(member, "SIGCONT");
    }
  }

  /** Mostly the holder while it runs, else anybody. */
  async #victim(who: number, whether: number): Promise<Member | undefined> {
    const ready = this.#crew.living.filter((member) => member.isReady);
    const lease = whether < holderShare ? await this.#leases.read(sessionId) : undefined;
    const holder = ready.find((member) => member.child.pid === lease?.holder.pid && !member.isStopped);
    return holder ?? ready[Math.floor(who * ready.length)];
  }

  #kill(victim: Member): void {
    if (this.#crew.living.filter((member) => member.isReady).length < this.#processCount - missingMax) return;
    this.#resumes.delete(victim);
    this.#crew.send(victim, "SIGKILL");
    this.#crew.start();
  }

  #stop(victim: Member, ms: number): void {
    if (victim.isStopped || this.#resumes.size >= stoppedMax) return;
    this.#crew.send(victim, "SIGSTOP");
    this.#resumes.set(victim, performance.now() + ms);
  }
}
