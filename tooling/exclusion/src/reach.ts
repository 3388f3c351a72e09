import { lateEffectCount } from "./effect-checks.ts";
import type { GroundReach } from "./ground.ts";
import type { RecordIndex } from "./record-index.ts";

/** How often each thing happened: a run without violations must have been somewhere. */
export interface Reach extends GroundReach {
  readonly grants: number;
  readonly renewals: number;
  readonly appends: number;
  readonly effects: number;
  /** Started late, since their process was stopped between check and start. */
  readonly lateEffects: number;
  readonly kills: number;
  readonly stops: number;
  /** Turns of a killed process that the next grant settled. */
  readonly takeoversByDeath: number;
  /** The same of a process that was not killed: it was stopped until its lease expired. */
  readonly takeoversByExpiry: number;
  /** Writes that the store refused for their token. */
  readonly staleRefusals: number;
  readonly losses: number;
  readonly busy: number;
}

export type Floors = Partial<Reach>;

export function reachOf(index: RecordIndex, ground: GroundReach): Reach {
  const count = (name: Parameters<RecordIndex["all"]>[0]): number => index.all(name).length;
  const sent = (signal: string): number => index.history.signals.filter((one) => one.signal === signal).length;
  const takeovers = index
    .all("granted")
    .flatMap(({ predecessorInstanceId: id, atNs }) =>
      id === undefined ? [] : [index.wasKilled(index.workerOf(id), atNs) ? "death" : "expiry"],
    );
  return {
    grants: count("granted"),
    renewals: count("renewed"),
    appends: count("appended"),
    effects: count("effect"),
    lateEffects: lateEffectCount(index),
    kills: sent("SIGKILL"),
    stops: sent("SIGSTOP"),
    takeoversByDeath: takeovers.filter((how) => how === "death").length,
    takeoversByExpiry: takeovers.filter((how) => how === "expiry").length,
    staleRefusals: count("refused"),
    losses: count("lost"),
    busy: count("busy"),
    ...ground,
  };
}

/** What was not reached often enough, a sentence each. */
export function shortfalls(reach: Reach, floors: Floors): readonly string[] {
  const names = Object.keys(floors) as (keyof Reach)[];
  return names
    .filter((name) => reach[name] < (floors[name] ?? 0))
    .map((name) => `REACH: ${name} happened ${reach[name]} times, wanted are ${floors[name]}`);
}
