import { CodedError } from "@turnkeeper/kernel";
import type { MemoryStore, StateStore } from "@turnkeeper/state-store";
import type { ProcessLife } from "./process-life.ts";

/** How often a call of the store meets each fault, as chances in [0, 1). */
export interface FaultRates {
  /** The process dies just before, or just after, the call has its effect. */
  readonly die: number;
  /** The process is stopped at the same places; the world continues it later. */
  readonly stop: number;
  /** The store says it is busy; nothing was written. */
  readonly busy: number;
  /** The store fails after the effect: an indeterminate outcome. */
  readonly unknown: number;
  /** The call takes a while. */
  readonly slow: number;
}

export const noFaults: FaultRates = { die: 0, stop: 0, busy: 0, unknown: 0, slow: 0 };

const slowMsMax = 400;

/** What the world is told of the faults a call met. */
export type FaultCounter = (fault: keyof FaultRates) => void;

function guardedPort<Port extends object>(
  port: Port,
  life: ProcessLife,
  rates: () => FaultRates,
  unit: () => number,
  count: FaultCounter,
): Port {
  const happens = (fault: keyof FaultRates): boolean => {
    const does = unit() < rates()[fault];
    if (does) count(fault);
    return does;
  };
  const edge = async (): Promise<void> => {
    if (happens("slow")) {
      const ms = unit() * slowMsMax;
      await new Promise<void>((resolve) => life.host.timers.after(ms, resolve));
    }
    if (happens("stop")) life.stop();
    if (happens("die")) life.kill();
    await life.awake();
  };
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        await edge();
        if (happens("busy")) throw new CodedError("STORE_BUSY", "Simulated: another process kept the lock.");
        const answer = (await Reflect.apply(member, target, args)) as unknown;
        await edge();
        if (happens("unknown")) throw new CodedError("STORE_IO", "Simulated: the outcome of the commit is unknown.");
        return answer;
      };
    },
  });
}

/** The shared store as one process sees it: every call may be slow, fail, or be the last thing the process does. */
export function faultyStore(
  shared: MemoryStore,
  life: ProcessLife,
  rates: () => FaultRates,
  unit: () => number,
  count: FaultCounter,
): StateStore {
  const port = <Port extends object>(one: Port): Port => guardedPort(one, life, rates, unit, count);
  return {
    sessions: port(shared.sessions),
    leases: port(shared.leases),
    transcript: port(shared.transcript),
    inbox: port(shared.inbox),
    turns: port(shared.turns),
    // The spool is for the time when the store fails, and does not fail with it.
    spool: guardedPort(shared.spool, life, () => ({ ...rates(), busy: 0, unknown: 0 }), unit, count),
    check: () => shared.check(),
    close: async () => {},
  };
}
