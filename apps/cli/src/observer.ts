import { systemHost } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { closeAll, openExistingStore, readContext } from "./command-context.ts";
import type { CommandContext, CommonFlags } from "./command-context.ts";
import type { CommandIo } from "./command-io.ts";
import { socketFolderOf, storeExists } from "./store-location.ts";

/** A store that is looked at, with the means to ask whether its holders live. */
export interface Observed {
  readonly context: CommandContext;
  readonly store: StateStore;
  readonly presence: ProcessPresence;
}

/** Opens the store for a command, and closes it whatever comes of it. Makes nothing, unless it is opened otherwise. */
export async function withStore(
  io: CommandIo,
  flags: CommonFlags,
  work: (store: StateStore, context: CommandContext) => Promise<number>,
  open: (context: CommandContext) => Promise<StateStore> = openExistingStore,
): Promise<number> {
  const context = await readContext(io, flags);
  const store = await open(context);
  try {
    return await work(store, context);
  } finally {
    await closeAll([() => store.close()]);
  }
}

/** The same with a presence: whoever asks the sockets of others answers on one of its own. */
export async function withObserved(
  io: CommandIo,
  flags: CommonFlags,
  work: (observed: Observed) => Promise<number>,
  open: (context: CommandContext) => Promise<StateStore> = openExistingStore,
): Promise<number> {
  const observe = async (store: StateStore, context: CommandContext): Promise<number> => {
    const { openProcessPresence } = await import("@turnkeeper/turn-lease");
    const { path, url } = context.store;
    const spansHosts = url !== undefined;
    const presence = await openProcessPresence(
      { host: systemHost },
      spansHosts || (await storeExists(path)) ? { socketFolder: socketFolderOf(path), spansHosts } : {},
    );
    try {
      return await work({ context, store, presence });
    } finally {
      await closeAll([() => presence.close()]);
    }
  };
  return withStore(io, flags, observe, open);
}
