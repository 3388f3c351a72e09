import { systemHost } from "@turnkeeper/kernel";
import type { HolderStatus } from "./liveness-socket.ts";

/** One socket for everybody in this process who opened its folder. */
export interface SharedSocket {
  openCount: number;
  readonly server: Promise<{ readonly close: () => Promise<void> }>;
  /** Set when the last one has left: whoever comes now waits for this and opens another. */
  closing?: Promise<void>;
}

/** What is running in this instance of the program, shared by every copy of this package in it. */
export interface ProcessInstance {
  readonly instanceId: string;
  /** Holders and runners that are active here, each with how often it was registered. */
  readonly activeCounts: Map<string, number>;
  /** What a holder says of its work, by its id. */
  readonly statuses: Map<string, () => HolderStatus>;
  /** Who wants to hear of a wake-up, by session. */
  readonly wakeListeners: Map<string, Set<() => void>>;
  /** The liveness sockets, by the real path of their folder. */
  readonly sockets: Map<string, SharedSocket>;
}

const registryKey = Symbol.for("turnkeeper.process-instance/1");

interface Registry {
  [registryKey]?: ProcessInstance;
}

const registry: typeof globalThis & Registry = globalThis;

/**
 * This instance. Its id is made when the first copy of the package loads, and never inherited: a process that was
 * restarted in place, or has the pid of one that died, is another instance. Each worker thread is one of its own.
 */
export const processInstance: ProcessInstance = (registry[registryKey] ??= {
  instanceId: systemHost.random.id(),
  activeCounts: new Map(),
  statuses: new Map(),
  wakeListeners: new Map(),
  sockets: new Map(),
});
