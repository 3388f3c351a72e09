/** A history with its questions answered: who held what, who was stopped or dead when. */
import type { EventOf, History, WorkerEvent } from "./history.ts";

/** A grant with all that its holder recorded under it. */
export interface GrantSpan {
  readonly grant: EventOf<"granted">;
  /** Under this token, the grant included, in order. */
  readonly events: readonly WorkerEvent[];
  /** When its holder is known to have ended believing: it gave up, began to give back, or was not heard of again. */
  readonly believedUntilNs: number;
}

interface Stop {
  readonly fromNs: number;
  readonly untilNs: number;
}

function spanOf(grant: EventOf<"granted">, events: readonly WorkerEvent[]): GrantSpan {
  const end = events.find(({ event }) => event === "lost" || event === "ending") ?? events.at(-1) ?? grant;
  return { grant, events, believedUntilNs: end.atNs };
}

export class RecordIndex {
  readonly history: History;
  /** In the order of their tokens. */
  readonly spans: readonly GrantSpan[];
  readonly #stops = new Map<string, readonly Stop[]>();
  readonly #killedNs = new Map<string, number>();
  readonly #workers = new Map<string, string>();

  constructor(history: History) {
    this.history = history;
    const byGrant = new Map<string, WorkerEvent[]>();
    for (const event of history.events) {
      if (event.event === "ready") this.#workers.set(event.instanceId, event.worker);
      if (!("fencingToken" in event)) continue;
      const key = `${event.worker} ${event.fencingToken}`;
      byGrant.set(key, [...(byGrant.get(key) ?? []), event]);
    }
    this.spans = this.all("granted")
      .map((grant) => spanOf(grant, byGrant.get(`${grant.worker} ${grant.fencingToken}`) ?? []))
      .toSorted((left, right) => left.grant.fencingToken - right.grant.fencingToken);
    this.#readSignals();
  }

  #readSignals(): void {
    const begun = new Map<string, number>();
    for (const { worker, signal, beforeNs, afterNs } of this.history.signals) {
      const fromNs = begun.get(worker);
      if (signal === "SIGSTOP") {
        begun.set(worker, beforeNs);
        continue;
      }
      if (signal === "SIGKILL") this.#killedNs.set(worker, beforeNs);
      if (fromNs === undefined) continue;
      begun.delete(worker);
      this.#stops.set(worker, [...(this.#stops.get(worker) ?? []), { fromNs, untilNs: afterNs }]);
    }
  }

  all<Name extends WorkerEvent["event"]>(name: Name): readonly EventOf<Name>[] {
    return this.history.events.filter((event): event is EventOf<Name> => event.event === name);
  }

  /** Whether the process may have stood still at some moment of this time. */
  wasStopped(worker: string, fromNs: number, untilNs: number): boolean {
    return (this.#stops.get(worker) ?? []).some((stop) => stop.fromNs <= untilNs && stop.untilNs >= fromNs);
  }

  /** Whether the process had been sent SIGKILL by then, or ever. */
  wasKilled(worker: string, atNs: number = Infinity): boolean {
    const killedNs = this.#killedNs.get(worker);
    return killedNs !== undefined && killedNs <= atNs;
  }

  workerOf(instanceId: string): string {
    return this.#workers.get(instanceId) ?? `an unknown process (${instanceId})`;
  }
}
