import { CodedError, systemHost } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import type { PostgresStore } from "@turnkeeper/state-store-postgres";
import { cliError } from "./cli-error.ts";
import { complain } from "./command-io.ts";
import type { CommandIo } from "./command-io.ts";
import type { Config } from "./config/config.ts";
import { findingLine, loadConfig } from "./config/config-file.ts";
import type { LoadedConfig } from "./config/config-file.ts";
import { ensureHome, locateHome } from "./home.ts";
import type { HomeLocation } from "./home.ts";
import { runCommand } from "./printed-command.ts";
import type { CommandPlace } from "./printed-command.ts";
import { locateStore, remainsOfStore, remainsText, storeExists } from "./store-location.ts";
import type { StoreLocation } from "./store-location.ts";

/** Flags that most commands share, as commander hands them over. */
export interface CommonFlags {
  readonly home?: string;
  readonly store?: string;
  readonly json?: boolean;
}

/** Where a command works and with which settings. */
export interface CommandContext {
  readonly home: HomeLocation;
  readonly loaded: LoadedConfig;
  readonly config: Config;
  readonly store: StoreLocation;
  /** The same for commands that are printed to be typed. */
  readonly place: CommandPlace;
}

/** Reads home, settings and store location. What is wrong in config.yaml is told once, on stderr. */
export async function readContext(io: CommandIo, flags: CommonFlags): Promise<CommandContext> {
  const home = locateHome(io, flags.home);
  const loaded = await loadConfig(home.folder);
  for (const finding of loaded.findings) complain(io, findingLine(loaded.file, finding));
  const { config } = loaded;
  const store = locateStore(io, { flag: flags.store, configured: config.store.url, home: home.folder });
  const place = { path: store.shown, ...(home.source === "--home" ? { home: home.folder } : {}) };
  return { home, loaded, config, store, place };
}

/** A new store in the place of one that is lost would say that there never was anything. */
async function refuseRemains({ path: storePath, url }: StoreLocation): Promise<void> {
  if (url !== undefined) return;
  const remains = await remainsOfStore(storePath);
  if (remains.length === 0) return;
  throw cliError(
    "STORE_MISSING",
    `Could not open the store ${storePath}: ${remainsText(remains)}. Nothing was touched; bring the file back, or move what is left away to begin anew.`,
    undefined,
    { path: storePath },
  );
}

/** A store; one on a server tells as well what other hosts have to say. */
export type OpenStore = StateStore & Partial<Pick<PostgresStore, "listen">>;

/** Opens the store for a command that writes, making it and its home where they are missing. */
export async function openStore({ home, store, config }: CommandContext): Promise<OpenStore> {
  // The home has the sockets and the spool of a store that has no file.
  if (store.source === "default" || store.url !== undefined) await ensureHome(home);
  if (store.url !== undefined) return openServerStore(store, store.url, config);
  await refuseRemains(store);
  const { openSqliteStore } = await import("@turnkeeper/state-store-sqlite");
  return openSqliteStore(store.path, { host: systemHost }, { journalMode: config.store.journal_mode });
}

/** A store on a server is whoever's the server lets in; on this host it has a spool, for what the server does not take. */
export async function openServerStore(
  { path: name }: StoreLocation,
  url: string,
  { store: { listen_url: listenUrl }, agent }: Config,
  { onlyLooks = false }: { readonly onlyLooks?: boolean } = {},
): Promise<PostgresStore> {
  const { defaultPostgresStoreOptions, openPostgresStore } = await import("@turnkeeper/state-store-postgres");
  const listening = listenUrl === "" ? {} : { listenUrl: listenUrl.toLowerCase() !== "none" && listenUrl };
  // Whoever waits is not believed in for longer than a holder.
  const runnerTtlMs = Math.min(defaultPostgresStoreOptions.runnerTtlMs, Math.ceil(agent.turn_lease.ttl_s * 1000));
  const options = { spoolFolder: `${name}-spool`, runnerTtlMs, onlyLooks, ...listening };
  return openPostgresStore(url, { host: systemHost }, options);
}

/** Whether a server has nothing of ours: it was opened by somebody who only looks. */
export function isMissingSchema(error: unknown): boolean {
  return CodedError.is(error, "STORE_UNAVAILABLE") && error.context.version === 0;
}

/**
 * Opens the store for a command that looks: nothing is made in its place. A home without a store reads as an empty one; a path that
 * was named and leads nowhere is a mistake. Rejects with `STORE_MISSING`, also where something of a store is left.
 */
export async function openExistingStore(context: CommandContext): Promise<StateStore> {
  const { store, place } = context;
  if (store.url !== undefined) return openExistingServerStore(context, store.url);
  if (await storeExists(store.path)) return openStore(context);
  await refuseRemains(store);
  if (store.source !== "default") {
    throw cliError(
      "STORE_MISSING",
      `There is no store at ${store.path} (${store.source}); one is made there by: ${runCommand(place)}`,
    );
  }
  const { createMemoryStore } = await import("@turnkeeper/state-store");
  return createMemoryStore({ host: systemHost });
}

async function openExistingServerStore(
  { home, store, config, place }: CommandContext,
  url: string,
): Promise<StateStore> {
  await ensureHome(home);
  try {
    return await openServerStore(store, url, config, { onlyLooks: true });
  } catch (error) {
    if (!isMissingSchema(error)) throw error;
    const missing = `There is no store at ${store.shown} (${store.source}); one is made there by: ${runCommand(place)}`;
    throw cliError("STORE_MISSING", missing, error);
  }
}

/** Closes what a command opened, last first; a command that has its answer does not fail over an end. */
export async function closeAll(closings: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const close of closings.toReversed()) {
    try {
      await close();
    } catch {
      // A sealed store refuses to be closed (a checkpoint could harm the file), and has been reported already.
    }
  }
}
