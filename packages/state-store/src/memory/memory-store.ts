import type { Host } from "@turnkeeper/kernel";
import type { StateStore } from "../state-store.ts";
import { MemoryInbox } from "./memory-inbox.ts";
import { MemoryLeases } from "./memory-leases.ts";
import { MemorySessions } from "./memory-sessions.ts";
import { MemorySpool } from "./memory-spool.ts";
import { storeError } from "./memory-rows.ts";
import { MemoryState } from "./memory-state.ts";
import { MemoryTranscript } from "./memory-transcript.ts";
import { MemoryTurns } from "./memory-turns.ts";

/** The in-memory reference: a `StateStore` whose state outlives the handle, so a test can crash it and open it again. */
export interface MemoryStore extends StateStore {
  /** Another handle on the same state: what a process sees that opens the store after a crash. This handle stays usable. */
  reopen(): MemoryStore;
}

function checkOpen(isOpen: boolean): void {
  if (!isOpen) throw storeError("STORE_CLOSED", "The store is closed; open it again to use it.");
}

/** A port whose every method first asks whether the handle is still open, and then runs to its end in one step. */
function guarded<Port extends object>(port: Port, isOpen: () => boolean): Port {
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        checkOpen(isOpen());
        return Reflect.apply(member, target, args) as unknown;
      };
    },
  });
}

function handleOn(state: MemoryState): MemoryStore {
  let open = true;
  const isOpen = (): boolean => open;
  return {
    sessions: guarded(new MemorySessions(state), isOpen),
    leases: guarded(new MemoryLeases(state), isOpen),
    transcript: guarded(new MemoryTranscript(state), isOpen),
    inbox: guarded(new MemoryInbox(state), isOpen),
    turns: guarded(new MemoryTurns(state), isOpen),
    spool: guarded(new MemorySpool(state), isOpen),
    check: async () => checkOpen(open),
    close: async () => {
      open = false;
    },
    reopen: () => handleOn(state),
  };
}

/**
 * The executable specification of the contract: no I/O, every method one synchronous step behind its promise. Expiry
 * is judged on the host's boot clock. For tests, for embedders without a disk, and as the model that adapters are
 * compared with.
 */
export function createMemoryStore(deps: { readonly host: Host }): MemoryStore {
  return handleOn(new MemoryState(deps.host));
}
