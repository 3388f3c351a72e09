import type { Host } from "@turnkeeper/kernel";
import type { ProcessIdentity } from "@turnkeeper/state-store";
import type { HolderStatus } from "../liveness-socket.ts";
import type { Liveness, ProcessPresence, WakeResult } from "../presence.ts";

/** A process that exists in a test alone, and that the test can kill, stop and continue. */
export interface VirtualProcess extends ProcessPresence {
  /** It ends, as by SIGKILL: others find it dead. */
  kill(): void;
  /** It stands still, as by SIGSTOP: nothing may be concluded, and wake-ups wait. */
  stop(): void;
  /** It goes on, and hears the wake-ups that waited. */
  continue(): void;
}

/** Processes that can reach each other without sockets. */
export interface VirtualProcesses {
  start(identity?: Partial<ProcessIdentity>): VirtualProcess;
}

class Process implements VirtualProcess {
  readonly identity: ProcessIdentity;
  readonly #others: ReadonlyMap<string, Process>;
  readonly #activeCounts = new Map<string, number>();
  readonly #statuses = new Map<string, () => HolderStatus>();
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #waitingWakes: string[] = [];
  #state: "running" | "stopped" | "dead" = "running";

  constructor(identity: ProcessIdentity, others: ReadonlyMap<string, Process>) {
    this.identity = identity;
    this.#others = others;
  }

  register(id: string): Disposable {
    this.#activeCounts.set(id, (this.#activeCounts.get(id) ?? 0) + 1);
    let isDisposed = false;
    return {
      [Symbol.dispose]: () => {
        const rest = (this.#activeCounts.get(id) ?? 0) - (isDisposed ? 0 : 1);
        isDisposed = true;
        if (rest > 0) this.#activeCounts.set(id, rest);
        else this.#activeCounts.delete(id);
      },
    };
  }

  reportStatus(id: string, read: () => HolderStatus): Disposable {
    this.#statuses.set(id, read);
    return { [Symbol.dispose]: () => void this.#statuses.delete(id) };
  }

  async statusOf(target: ProcessIdentity, id: string): Promise<HolderStatus | undefined> {
    const other = this.#others.get(target.instanceId);
    if (!other || other.#state !== "running") return undefined;
    return other.#statuses.get(id)?.();
  }

  onWake(sessionId: string, listener: () => void): Disposable {
    const listeners = this.#listeners.get(sessionId) ?? new Set();
    this.#listeners.set(sessionId, listeners);
    const own = (): void => listener();
    listeners.add(own);
    return { [Symbol.dispose]: () => void listeners.delete(own) };
  }

  async probe(target: ProcessIdentity, id: string): Promise<Liveness> {
    const other = this.#others.get(target.instanceId);
    if (!other) return "unknown";
    if (other.identity.bootId !== this.identity.bootId || other.#state === "dead") return "dead";
    if (other.#state === "stopped") return "unknown";
    return other.#activeCounts.has(id) ? "active" : "unknown-here";
  }

  async wake(target: ProcessIdentity, sessionId: string, id?: string): Promise<WakeResult> {
    const other = this.#others.get(target.instanceId);
    if (!other) return "unknown";
    if (other.identity.bootId !== this.identity.bootId || other.#state === "dead") return "dead";
    if (other.#state === "stopped") {
      other.#waitingWakes.push(sessionId);
      return "unknown";
    }
    const isActive = id !== undefined && other.#activeCounts.has(id);
    return other.#ring(sessionId) || isActive ? "woken" : "unknown-here";
  }

  #ring(sessionId: string): boolean {
    const listeners = [...(this.#listeners.get(sessionId) ?? [])];
    for (const listener of listeners) listener();
    return listeners.length > 0;
  }

  kill(): void {
    this.#state = "dead";
  }

  stop(): void {
    if (this.#state === "running") this.#state = "stopped";
  }

  continue(): void {
    if (this.#state !== "stopped") return;
    this.#state = "running";
    for (const sessionId of this.#waitingWakes.splice(0)) this.#ring(sessionId);
  }

  async close(): Promise<void> {}
}

/** Makes a set of virtual processes on one host. They answer at once; what they do in between is the test's affair. */
export function virtualProcesses(deps: { readonly host: Host }): VirtualProcesses {
  const processes = new Map<string, Process>();
  return {
    start(identity = {}) {
      const { clock, random } = deps.host;
      const facts = {
        instanceId: random.id(),
        host: "virtual",
        bootId: clock.bootId,
        pid: 1_000 + processes.size,
        ...identity,
      };
      const one = new Process(Object.freeze(facts), processes);
      processes.set(facts.instanceId, one);
      return one;
    },
  };
}
