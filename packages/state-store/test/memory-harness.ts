import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore, StateStore } from "@turnkeeper/state-store";
import type { ConformanceHarness } from "@turnkeeper/state-store/testing";

/** Puts a fault into a store: how a control shows that a case has teeth. Called again at each reopening. */
export type Fault = (store: StateStore, host: VirtualHost) => StateStore;

/** The memory store under the conformance cases. A crashed handle is closed, so a case that still uses it fails. */
export function memoryHarness(fault: Fault = (store) => store): ConformanceHarness {
  const host = virtualHost();
  let current: MemoryStore | undefined;
  return {
    host,
    open: async () => {
      current = createMemoryStore({ host });
      return fault(current, host);
    },
    reopen: async () => {
      if (!current) throw new Error("Open the store before it is reopened.");
      await current.close();
      current = current.reopen();
      return fault(current, host);
    },
  };
}
