/**
 * One process of the crew: node worker.ts FOLDER NAME MODE PLACE
 * It offers one input after the other to the one session and runs what it is granted, until its stdin ends; then it
 * runs what is left, and ends.
 */
import { join } from "node:path";
import { CodedError, systemHost } from "@turnkeeper/kernel";
import type { StateStore } from "@turnkeeper/state-store";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { openPostgresStore } from "@turnkeeper/state-store-postgres";
import type { PostgresStore } from "@turnkeeper/state-store-postgres";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { acquireTurnLease, openProcessPresence } from "@turnkeeper/turn-lease";
import { leaseBounds, modes, sessionId } from "./bounds.ts";
import type { Place } from "./ground.ts";
import { openRecorder } from "./history.ts";
import { patiently, WorkerTurn } from "./turn.ts";
import type { TurnDeps } from "./turn.ts";
import { UnfencedWriter } from "./unfenced-writer.ts";
import { WatchedHost, WatchedLeases } from "./watched-deps.ts";

const [folder = "", name = "", wanted = "", given = "{}"] = process.argv.slice(2);
const mode = modes.find((one) => one === wanted) ?? "fenced";
const path = join(folder, "state.db");

let isOver = false;
process.stdin.once("end", () => (isOver = true)).resume();

const place = JSON.parse(given) as Place;
const host = new WatchedHost(place.host);
const record = openRecorder(join(folder, "history"), name);

/** A way that says nothing for so long is cut: half of what a lease lasts is left to ask again. */
const answerMs = leaseBounds.ttlMs / 2;

/** The server may be away when a worker begins. */
async function openShared(url: string): Promise<PostgresStore> {
  for (;;) {
    try {
      return await openPostgresStore(url, { host }, { answerMs, connectionsMax: 4 });
    } catch (error) {
      if (!CodedError.is(error, "STORE_UNAVAILABLE") && !CodedError.is(error, "STORE_BUSY")) throw error;
    }
  }
}

const shared = place.url === undefined ? undefined : await openShared(place.url);
const store: StateStore = shared ?? (await openSqliteStore(path, { host: systemHost }));
const presence = await openProcessPresence(
  { host },
  { socketFolder: join(folder, `sockets${place.host?.name ?? ""}`), spansHosts: place.url !== undefined },
);
const wakeUps = shared?.listen((id) => void presence.wake(presence.identity, id));
const scheduler = createPeriodicScheduler({ host });
const leases = new WatchedLeases(store.leases, record);
const deps = { store: leases, inbox: store.inbox, scheduler, host, presence };
const unfenced = mode === "unfenced" ? new UnfencedWriter(path) : undefined;
const turnDeps: TurnDeps = { store, host, record, mode, unfenced };
const runner = { ...presence.identity, runnerId: host.random.id() };
const registration = presence.register(runner.runnerId);
let turnCount = 0;

/** Runs one turn, and answers whose input it took; nothing when nothing is to be run. */
async function runTurn(): Promise<string | undefined> {
  const turnId = `${name}-turn-${++turnCount}`;
  const result = await acquireTurnLease(deps, sessionId, {
    ...leaseBounds,
    begin: { turnId, runnerId: runner.runnerId },
  });
  if (result.kind === "nothing-to-run") return undefined;
  if (result.kind !== "granted") throw new Error(`acquireTurnLease answered ${result.kind}.`);
  const { lease, input, predecessors } = result;
  const predecessor = predecessors?.at(-1);
  const inputId = input?.inputId ?? "";
  record({
    event: "granted",
    fencingToken: lease.fencingToken,
    turnId,
    inputId,
    askedNs: leases.acquireSentNs,
    ...(predecessor ? { predecessorInstanceId: predecessor.holder.instanceId } : {}),
  });
  await new WorkerTurn(turnDeps, lease, turnId).run();
  return inputId;
}

async function offer(inputId: string): Promise<void> {
  const request = { sessionId, inputId, text: inputId, onBusy: "wait", runner } as const;
  const answer = await patiently(record, () => store.inbox.offer(request));
  // Known: an answer that was lost on the way had said so before.
  if (answer.kind !== "accepted" && answer.kind !== "known") throw new Error(`offer answered ${answer.kind}.`);
  record({ event: "accepted", inputId });
}

record({ event: "ready", instanceId: presence.identity.instanceId });
process.stdout.write("ready\n");
for (let number = 1; number === 1 || !isOver; number++) {
  const inputId = `${name}-input-${number}`;
  await offer(inputId);
  // Orphans run ahead of our own, and a runner that was taken for dead may find its own run by others.
  for (let taken = await runTurn(); taken !== undefined && taken !== inputId; taken = await runTurn());
}
while ((await runTurn()) !== undefined);

registration[Symbol.dispose]();
unfenced?.close();
wakeUps?.[Symbol.dispose]();
await scheduler.close();
await presence.close();
await store.close();
