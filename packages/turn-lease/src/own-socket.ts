/** The socket of this process: who asks it, who shares it, and what it answers. */
import { messageOf } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { serveLiveness } from "./liveness-socket.ts";
import type { HolderStatus, LivenessAnswer, LivenessRequest } from "./liveness-socket.ts";
import { processInstance } from "./process-instance.ts";
import { prepareSocketFolder, sweepSocketFolder } from "./socket-folder.ts";

function ring(sessionId: string): boolean {
  // A copy: a listener may add another, which is not meant by this ring.
  const listeners = Array.from(processInstance.wakeListeners.get(sessionId) ?? []);
  for (const listener of listeners) {
    try {
      listener();
    } catch (error) {
      process.emitWarning(`A wake-up listener of session ${sessionId} threw.`, {
        code: "WAKE_LISTENER_FAILED",
        detail: String(error),
      });
    }
  }
  return listeners.length > 0;
}

/** A status that throws is no status: whether the holder is active must be answered all the same. */
function statusHere(id: string): HolderStatus | undefined {
  try {
    return processInstance.statuses.get(id)?.();
  } catch (error) {
    process.emitWarning(`The status of holder ${id} threw.`, { code: "HOLDER_STATUS_FAILED", detail: String(error) });
    return undefined;
  }
}

/** What this process answers, to itself and to others. */
export function answerHere({ id, wake, status: isAsked }: LivenessRequest): LivenessAnswer {
  const active = id !== undefined && processInstance.activeCounts.has(id);
  const woken = wake !== undefined && ring(wake);
  const status = isAsked === true && id !== undefined ? statusHere(id) : undefined;
  return { instanceId: processInstance.instanceId, active, woken, ...(status ? { status } : {}) };
}

export interface OpenSocket {
  readonly path?: string;
  readonly problem?: string;
  readonly close: () => Promise<void>;
}

async function joinSocket(
  host: Host,
  folder: string,
): Promise<{ readonly path: string; readonly leave: () => Promise<void> }> {
  const { sockets, instanceId } = processInstance;
  const { path, key } = await prepareSocketFolder(folder, instanceId);
  for (let known = sockets.get(key); known?.closing; known = sockets.get(key)) await known.closing;
  const shared = sockets.get(key) ?? { openCount: 0, server: serveLiveness(host.timers, path, answerHere) };
  sockets.set(key, shared);
  shared.openCount++;
  const leave = async (): Promise<void> => {
    if (--shared.openCount > 0) return;
    shared.closing = shared.server
      .then((server) => server.close())
      .catch(() => {})
      .finally(() => sockets.delete(key));
    await shared.closing;
  };
  try {
    await shared.server;
  } catch (error) {
    await leave();
    throw error;
  }
  return { path, leave };
}

/** Opens the socket of this process in `folder`, or joins the one that is open. Never rejects. */
export async function openSocket(host: Host, folder: string): Promise<OpenSocket> {
  try {
    const { path, leave } = await joinSocket(host, folder);
    let isOpen = true;
    // Tidying up is nobody's condition for going on; what this sweep leaves, the next process finds.
    const sweeping = sweepSocketFolder(host, folder, path, () => isOpen).catch(() => {});
    const close = async (): Promise<void> => {
      isOpen = false;
      await sweeping;
      await leave();
    };
    return { path, close };
  } catch (error) {
    return { problem: messageOf(error), close: async () => {} };
  }
}
