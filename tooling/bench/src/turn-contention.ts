import { join } from "node:path";
import { systemHost } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { StateStore } from "@turnkeeper/state-store";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { acquireTurnLease, openProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessPresence } from "@turnkeeper/turn-lease";
import { sessionId, ttlMs } from "./contention.ts";
import type { ContenderSettings, Contention } from "./contention.ts";

interface Seat {
  readonly store: StateStore;
  readonly presence: ProcessPresence;
  readonly host: Host;
}

/** As an agent does it: the input is stored, the grant begins its turn, the end of the turn frees the session. */
function turnContention(name: string, { store, presence, host }: Seat): Contention {
  const scheduler = createPeriodicScheduler({ host });
  const deps = { store: store.leases, inbox: store.inbox, scheduler, host, presence };
  const runner = { ...presence.identity, runnerId: host.random.id() };
  const registration = presence.register(runner.runnerId);
  let turnCount = 0;
  let held: { readonly turnId: string; readonly answer: Awaited<ReturnType<typeof acquireTurnLease>> } | undefined;
  return {
    acquire: async () => {
      const turnId = `${name}-${process.pid}-${++turnCount}`;
      await store.inbox.offer({ sessionId, inputId: turnId, text: "Good morning", onBusy: "wait", runner });
      const answer = await acquireTurnLease(deps, sessionId, { ttlMs, begin: { turnId, runnerId: runner.runnerId } });
      held = { turnId, answer };
    },
    release: async () => {
      if (held?.answer.kind !== "granted") throw new Error(`acquireTurnLease answered ${held?.answer.kind}.`);
      const { turnId, answer } = held;
      const { grant } = answer.lease;
      await answer.lease.release(() => store.turns.end({ grant, turnId, outcome: "answered", release: true }));
    },
    close: async () => {
      registration[Symbol.dispose]();
      await scheduler.close();
      await presence.close();
      await store.close();
    },
  };
}

/** Processes of one machine: they find each other by their sockets. */
export async function openOnFile({ folder, name }: ContenderSettings): Promise<Contention> {
  const host = systemHost;
  const store = await openSqliteStore(join(folder, "state.db"), { host });
  const presence = await openProcessPresence({ host }, { socketFolder: join(folder, "sockets") });
  return turnContention(name, { store, presence, host });
}

/**
 * A host of its own, as the others see it: another boot, and its sockets elsewhere. They know of each other by the store
 * alone. With `hearsWakeUps` it listens as a program does; else it has its looks at the store, and nothing more.
 */
export async function openOnServer(
  { folder, name, serverUrl = "" }: ContenderSettings,
  hearsWakeUps: boolean,
): Promise<Contention> {
  const host: Host = { ...systemHost, clock: { ...systemHost.clock, bootId: `boot of ${name}` } };
  const store = await openPostgresStore(serverUrl, { host });
  const presence = await openProcessPresence({ host }, { socketFolder: join(folder, name), spansHosts: true });
  const contention = turnContention(name, { store, presence, host });
  if (!hearsWakeUps) return contention;
  const wakeUps = store.listen((session) => void presence.wake(presence.identity, session));
  const problem = await wakeUps.problem;
  if (problem !== undefined) throw new Error(problem);
  return {
    ...contention,
    close: async () => {
      wakeUps[Symbol.dispose]();
      await contention.close();
    },
  };
}
