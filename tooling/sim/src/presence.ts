import type { ProcessIdentity } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessLife } from "./process-life.ts";

interface Seat {
  readonly life: ProcessLife;
  readonly active: Set<string>;
  readonly listeners: Map<string, Set<() => void>>;
}

/** The sockets of the simulated machine: who answers, who is refused, who keeps silent. */
export class Sockets {
  readonly #seats = new Map<string, Seat>();

  open(instanceId: string, life: ProcessLife): ProcessPresence {
    const seat: Seat = { life, active: new Set(), listeners: new Map() };
    this.#seats.set(instanceId, seat);
    const { bootId } = life.host.clock;
    const identity: ProcessIdentity = { instanceId, host: "virtual", bootId, pid: life.pid };
    // A probe takes a moment, in which anything may happen to either side.
    const ask = async <Answer>(
      target: ProcessIdentity,
      answer: (seat: Seat) => Answer,
    ): Promise<Answer | "dead" | "unknown"> => {
      await new Promise<void>((resolve) => life.host.timers.after(1, resolve));
      const asked = this.#seats.get(target.instanceId);
      if (!asked || asked.life.state === "dead") return "dead";
      if (asked.life.state === "stopped") return "unknown";
      return answer(asked);
    };
    return {
      identity,
      register: (id) => {
        seat.active.add(id);
        return { [Symbol.dispose]: () => void seat.active.delete(id) };
      },
      probe: (target, id) => ask(target, (asked) => (asked.active.has(id) ? "active" : "unknown-here")),
      wake: (target, sessionId, id) =>
        ask(target, (asked) => {
          const listeners = asked.listeners.get(sessionId);
          for (const listener of listeners ?? []) asked.life.run(listener);
          if (listeners && listeners.size > 0) return "woken";
          return id !== undefined && asked.active.has(id) ? "woken" : "unknown-here";
        }),
      // Nothing is decided by a status, so nobody here has one.
      reportStatus: () => ({ [Symbol.dispose]: () => {} }),
      statusOf: async () => undefined,
      onWake: (sessionId, listener) => {
        const listeners = seat.listeners.get(sessionId) ?? new Set();
        seat.listeners.set(sessionId, listeners.add(listener));
        return { [Symbol.dispose]: () => void listeners.delete(listener) };
      },
      close: async () => {},
    };
  }
}
