import type { Host } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { migrate } from "./migrations.ts";
import type { FoundSchema } from "./migrations.ts";
import { resolvePostgresStoreOptions } from "./options.ts";
import type { PostgresStoreOptions, ResolvedPostgresStoreOptions } from "./options.ts";
import { PostgresInbox } from "./postgres-inbox.ts";
import { PostgresLeases } from "./postgres-leases.ts";
import { PostgresSessions } from "./postgres-sessions.ts";
import { PostgresSpool } from "./postgres-spool.ts";
import { PostgresTranscript } from "./postgres-transcript.ts";
import { PostgresTurns } from "./postgres-turns.ts";
import { RunnerVouching } from "./runner-vouching.ts";
import { patience, Server } from "./server.ts";
import { SessionWrites } from "./session-writes.ts";
import { SpoolFolder } from "./spool-folder.ts";
import { parseStoreUrl } from "./store-url.ts";
import type { StoreUrl } from "./store-url.ts";
import { WakeUpListening } from "./wake-ups.ts";
import type { WakeUps } from "./wake-ups.ts";

export interface PostgresStoreDeps {
  readonly host: Host;
}

/** What is known of the schema that was opened, for `doctor` and for messages. */
export interface StoreSchema {
  /** The store's URL without its password. */
  readonly url: string;
  readonly schema: string;
  readonly schemaVersion: number;
  /** Nothing can be stored: the server takes no writes (a standby, say), or this user may not. Absent where it can. */
  readonly readOnly?: "server" | "user";
}

/** A `StateStore` in a schema of a PostgreSQL database. */
export interface PostgresStore extends StateStore {
  readonly server: StoreSchema;
  /**
   * Calls `listener` with the id of each session that a process of this store may be waiting to hear of: it is the turn
   * of the head of its queue, its turn is to stop, or a call it asked about was answered. Hints, which come late, twice
   * or not at all; whoever has a `ProcessPresence` hands them on to `presence.wake(presence.identity, sessionId)`. Until
   * disposed; one connection for all listeners of a handle, which keeps no process alive.
   */
  listen(listener: (sessionId: string) => void): WakeUps;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Opens the store at a `postgres://` URL, making its schema where it is missing and bringing it up to date. Each handle
 * has connections of its own, opened when they are needed. Keeps APPEND-3 and SPOOL-1. Rejects with `STORE_CONTRACT`
 * for a wrong URL or option, and with `STORE_UNAVAILABLE`, `STORE_READONLY`, `STORE_NEWER`, `STORE_BUSY`, `STORE_FULL`
 * or `STORE_IO`; nothing is left open then.
 */
export async function openPostgresStore(
  url: string,
  deps: PostgresStoreDeps,
  options: PostgresStoreOptions = {},
): Promise<PostgresStore> {
  const { host } = deps;
  const parsed = parseStoreUrl(url);
  const resolved = resolvePostgresStoreOptions(options, parsed.schema);
  const server = new Server(parsed, resolved, host);
  const { version: schemaVersion, ...standing } = await opened(server, parsed, resolved);
  const writes = new SessionWrites(server, resolved, host.random);
  const folder = resolved.spoolFolder === undefined ? undefined : new SpoolFolder(resolved.spoolFolder, host.random);
  const spool = new PostgresSpool(folder, host.clock, server);
  const wakeUps = new WakeUpListening(listenUrlOf(parsed, resolved), resolved, server, host);
  const vouching = new RunnerVouching(server, resolved, host.timers);
  const close = (): Promise<void> => {
    wakeUps.close();
    vouching.close();
    return server.close();
  };
  const sessions = new PostgresSessions(server, writes, spool, host);
  return {
    sessions,
    leases: new PostgresLeases(server, writes, spool, vouching),
    transcript: new PostgresTranscript(server, writes),
    inbox: new PostgresInbox(server, writes, vouching),
    turns: new PostgresTurns(server, writes, spool),
    spool,
    check: async () => void (await sessions.nowMs()),
    server: { url: parsed.shown, schema: resolved.schema, schemaVersion, ...standing },
    listen: (listener) => wakeUps.listen(listener),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** What is there. Nothing is left open where it cannot be told. */
async function opened(server: Server, url: StoreUrl, options: ResolvedPostgresStoreOptions): Promise<FoundSchema> {
  try {
    return await server.patiently("open", patience.open, () => migrate(server, url, options));
  } catch (error) {
    await server.close();
    throw error;
  }
}

function listenUrlOf(store: StoreUrl, { listenUrl }: ResolvedPostgresStoreOptions): StoreUrl | undefined {
  if (listenUrl === false) return undefined;
  return listenUrl === undefined ? store : parseStoreUrl(listenUrl);
}
