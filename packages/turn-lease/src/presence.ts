/**
 * This process instance, as other processes can find it: an identity that is stored with every grant, and a unix
 * socket that says whether a holder or runner is still active here. A live process is not a live turn, a stopped one
 * is not a dead one, and a pid alone proves nothing.
 */
import { hostname } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { ProcessIdentity } from "@turnkeeper/state-store";
import { isLocalFolder } from "./file-system.ts";
import { askLiveness } from "./liveness-socket.ts";
import type { HolderStatus, LivenessAnswer, LivenessRequest } from "./liveness-socket.ts";
import { answerHere, openSocket } from "./own-socket.ts";
import type { OpenSocket } from "./own-socket.ts";
import { hasProvablyEnded, ownProcessFacts } from "./process-facts.ts";
import { processInstance } from "./process-instance.ts";

/**
 * `active`: it works on this, or might. `dead`: its process has provably ended. `unknown-here`: its process lives and
 * knows nothing of it. `unknown`: nothing may be concluded; a stopped process is one of these.
 */
export type Liveness = "active" | "dead" | "unknown-here" | "unknown";

/** `woken`: it heard. `unknown-here`: its process lives, but neither the id nor a listener is there. */
export type WakeResult = "woken" | "dead" | "unknown-here" | "unknown";

export interface ProcessPresence {
  /** Stored with every grant and every input this process makes. */
  readonly identity: ProcessIdentity;
  /** Why there is no socket, where one was asked for; for a `doctor`. Reclaim then works by pid and start time. */
  readonly socketProblem?: string;
  /**
   * Says that a holder or runner is active here, until disposed. Register a holder before its acquire is sent and a
   * runner before its first offer, or others may take it for leaked. Counted, when registered more than once.
   */
  register(id: string): Disposable;
  /** Answers others who ask what the holder `id` is doing, until disposed. `read` is called for each question. */
  reportStatus(id: string, read: () => HolderStatus): Disposable;
  /**
   * What the holder `id` of `target` says of its work; absent when it says nothing, or cannot be asked. For people:
   * nothing may be decided by it. Never rejects; at most some 200 ms.
   */
  statusOf(target: ProcessIdentity, id: string): Promise<HolderStatus | undefined>;
  /** Whether `id`, a holder or runner of `target`, is still active. Never rejects; at most some 200 ms. */
  probe(target: ProcessIdentity, id: string): Promise<Liveness>;
  /** Wakes `target` about a session: it is its turn, or a stop was asked for. `id` is the holder or runner meant. */
  wake(target: ProcessIdentity, sessionId: string, id?: string): Promise<WakeResult>;
  /** Calls `listener` at each wake-up about this session, until disposed. */
  onWake(sessionId: string, listener: () => void): Disposable;
  /** Lets go of the socket; the last handle on it in this process removes it. Safe to repeat. */
  close(): Promise<void>;
}

export interface ProcessPresenceOptions {
  /**
   * A folder for sockets alone, on the file system of the store, at most 75 bytes long; it is made private to this
   * user. Absent: no socket, and liveness is judged by pid and start time.
   */
  readonly socketFolder?: string;
  /**
   * The store is reached from other machines too, so that another boot may be another machine, whatever file system the
   * sockets are on. Default false: where the folder is local to this kernel, a process of another boot is dead.
   */
  readonly spansHosts?: boolean;
}

class Presence implements ProcessPresence {
  readonly identity: ProcessIdentity;
  readonly socketProblem?: string;
  readonly #host: Host;
  readonly #folder: string | undefined;
  readonly #spansHosts: boolean;
  readonly #isLocal = new Map<string, Promise<boolean>>();
  #closing: Promise<void> | undefined;
  readonly #onClose: () => Promise<void>;

  constructor(host: Host, { socketFolder, spansHosts = false }: ProcessPresenceOptions, socket: OpenSocket) {
    this.#host = host;
    this.#folder = socketFolder;
    this.#spansHosts = spansHosts;
    this.#onClose = socket.close;
    if (socket.problem !== undefined) this.socketProblem = socket.problem;
    this.identity = Object.freeze({
      instanceId: processInstance.instanceId,
      host: hostname(),
      bootId: host.clock.bootId,
      pid: process.pid,
      ...ownProcessFacts(),
      ...(socket.path === undefined ? {} : { socketPath: socket.path }),
    });
  }

  register(id: string): Disposable {
    const { activeCounts } = processInstance;
    activeCounts.set(id, (activeCounts.get(id) ?? 0) + 1);
    let isDisposed = false;
    return {
      [Symbol.dispose]: () => {
        if (isDisposed) return;
        isDisposed = true;
        const rest = (activeCounts.get(id) ?? 1) - 1;
        if (rest > 0) activeCounts.set(id, rest);
        else activeCounts.delete(id);
      },
    };
  }

  reportStatus(id: string, read: () => HolderStatus): Disposable {
    const { statuses } = processInstance;
    statuses.set(id, read);
    return {
      [Symbol.dispose]: () => {
        if (statuses.get(id) === read) statuses.delete(id);
      },
    };
  }

  onWake(sessionId: string, listener: () => void): Disposable {
    const { wakeListeners } = processInstance;
    const listeners = wakeListeners.get(sessionId) ?? new Set();
    wakeListeners.set(sessionId, listeners);
    // A function of its own, so that one listener registered twice is two.
    const own = (): void => listener();
    listeners.add(own);
    return {
      [Symbol.dispose]: () => {
        listeners.delete(own);
        if (listeners.size === 0 && wakeListeners.get(sessionId) === listeners) wakeListeners.delete(sessionId);
      },
    };
  }

  async probe(target: ProcessIdentity, id: string): Promise<Liveness> {
    const told = await this.#ask(target, { id });
    if (typeof told === "string") return told;
    return told.active ? "active" : "unknown-here";
  }

  async statusOf(target: ProcessIdentity, id: string): Promise<HolderStatus | undefined> {
    const told = await this.#ask(target, { id, status: true });
    return typeof told === "string" ? undefined : told.status;
  }

  async wake(target: ProcessIdentity, sessionId: string, id?: string): Promise<WakeResult> {
    const told = await this.#ask(target, { id, wake: sessionId });
    if (typeof told === "string") return told;
    // Whoever else listens for the session there does not make up for the one that is meant.
    const isThere = id === undefined ? told.woken : told.active;
    return isThere ? "woken" : "unknown-here";
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#onClose());
  }

  /** The answer of `target`, or what may be concluded from having none. */
  async #ask(target: ProcessIdentity, request: LivenessRequest): Promise<LivenessAnswer | "dead" | "unknown"> {
    if (target.instanceId === processInstance.instanceId) return answerHere(request);
    const { bootId } = this.identity;
    if (bootId === "" || target.bootId === "") return "unknown";
    // Nothing survives a reboot; but of a store that several machines share another boot may be another machine.
    if (bootId !== target.bootId) return (await this.#storeIsLocal()) ? "dead" : "unknown";
    for (const path of this.#pathsOf(target)) {
      const outcome = await askLiveness(this.#host.timers, path, request);
      if (outcome.kind === "answered" && outcome.answer.instanceId === target.instanceId) return outcome.answer;
      // Seen through a FUSE or network mount the socket of a living process is refused too.
      if (outcome.kind === "refused" && (await this.#folderIsLocal(dirname(path)))) return "dead";
      if (outcome.kind !== "absent") break;
    }
    return hasProvablyEnded(target) ? "dead" : "unknown";
  }

  /** Where the socket of `target` is: where it says, or, in a container that mounts the folder elsewhere, beside ours. */
  #pathsOf({ socketPath }: ProcessIdentity): readonly string[] {
    if (socketPath === undefined) return [];
    if (this.#folder === undefined) return [socketPath];
    return [...new Set([socketPath, join(resolve(this.#folder), basename(socketPath))])];
  }

  async #storeIsLocal(): Promise<boolean> {
    return !this.#spansHosts && this.#folder !== undefined && (await this.#folderIsLocal(this.#folder));
  }

  #folderIsLocal(folder: string): Promise<boolean> {
    const known = this.#isLocal.get(folder) ?? isLocalFolder(folder);
    this.#isLocal.set(folder, known);
    return known;
  }
}

/**
 * Opens this process's presence. Where no socket can be made (path too long, folder not ours, file system without
 * sockets) it works without, and says so in `socketProblem`. Opened twice for one folder it is one socket, counted.
 */
export async function openProcessPresence(
  deps: { readonly host: Host },
  options: ProcessPresenceOptions = {},
): Promise<ProcessPresence> {
  for (const key of Object.keys(options)) {
    if (key === "socketFolder" || key === "spansHosts") continue;
    throw new CodedError("OPTION_INVALID", `openProcessPresence: there is no option ${key}.`, {
      context: { option: key },
    });
  }
  const { socketFolder } = options;
  const socket = socketFolder === undefined ? { close: async () => {} } : await openSocket(deps.host, socketFolder);
  return new Presence(deps.host, options, socket);
}
