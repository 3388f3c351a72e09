/**
 * One process of the tests with real processes: it opens the store, does as its mode says, and prints one JSON line
 * for each thing that happened.
 */
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { systemHost } from "@turnkeeper/kernel";
import type { Runner } from "@turnkeeper/state-store";
import { openSqliteStore } from "@turnkeeper/state-store-sqlite";
import { acquireTurnLease, openProcessPresence } from "@turnkeeper/turn-lease";
import type { GrantedLease, TurnLeaseOptions } from "@turnkeeper/turn-lease";

const [mode = "", folder = "", settings = "{}"] = process.argv.slice(2);
const {
  sessionId = "s",
  name = "worker",
  rounds = 1,
  ...options
}: TurnLeaseOptions & { sessionId?: string; name?: string; rounds?: number } = JSON.parse(settings);

const host = systemHost;
const store = await openSqliteStore(`${folder}/state.db`, { host });
const presence = await openProcessPresence({ host }, { socketFolder: `${folder}/sockets` });
const scheduler = createPeriodicScheduler({ host });
const deps = { store: store.leases, inbox: store.inbox, scheduler, host, presence };

/** Monotonic microseconds, comparable between the processes of one machine. */
const nowUs = (): number => Number(process.hrtime.bigint() / 1_000n);
const tell = (event: string, facts: object = {}): void =>
  void process.stdout.write(`${JSON.stringify({ event, name, atUs: nowUs(), ...facts })}\n`);

async function take(wanted: TurnLeaseOptions = {}): Promise<GrantedLease> {
  const result = await acquireTurnLease(deps, sessionId, { ...options, ...wanted });
  if (result.kind !== "granted") throw new Error(`${name} was answered ${result.kind}`);
  return result;
}

async function line(): Promise<void> {
  await new Promise((resolve) => process.stdin.once("data", resolve));
}

async function close(): Promise<void> {
  await scheduler.close();
  await presence.close();
  await store.close();
}

switch (mode) {
  /** Takes the lease, and holds it until it is told to go on or loses it. */
  case "hold": {
    const { lease } = await take();
    lease.lost.addEventListener("abort", () => tell("lost", { reason: String(lease.lost.reason) }));
    tell("granted", { fencingToken: lease.fencingToken, identity: presence.identity });
    await line();
    const confirmed = await lease.confirm().then(
      () => true,
      () => false,
    );
    tell("confirmed", { confirmed });
    tell("released", await lease.release());
    process.stdin.unref();
    await close();
    break;
  }
  /** Takes the lease past turn-lease, as an owner would that forgot it, and lives on. */
  case "leak": {
    const holder = { ...presence.identity, holderId: host.random.id() };
    const granted = await store.leases.acquire({ sessionId, holder, ttlMs: 300_000 });
    tell("granted", granted);
    await line();
    break;
  }
  /** A turn whose promise never settles: only its lease keeps the process. */
  case "stuck": {
    const { lease } = await take();
    tell("granted", { fencingToken: lease.fencingToken });
    await new Promise(() => {});
    break;
  }
  /** Has a presence and nothing to do. */
  case "idle": {
    tell("present");
    break;
  }
  /** Offers one input after the other, each run as a turn of its own. */
  case "turns": {
    const runner: Runner = { ...presence.identity, runnerId: host.random.id() };
    using _registered = presence.register(runner.runnerId);
    tell("ready");
    await line();
    for (let round = 0; round < rounds; round++) {
      const turnId = host.random.id();
      const offeredAtUs = nowUs();
      const offered = await store.inbox.offer({ sessionId, inputId: turnId, text: name, onBusy: "wait", runner });
      const queuedAtUs = nowUs();
      const { lease, input } = await take({ begin: { turnId, runnerId: runner.runnerId } });
      tell("turn", {
        fencingToken: lease.fencingToken,
        seq: input?.seq,
        offeredAtUs,
        queuedAtUs,
        offered: offered.kind,
      });
      await new Promise((resolve) => setTimeout(resolve, 5));
      const releasedAtUs = nowUs();
      const end = { grant: lease.grant, turnId, outcome: "answered", release: true } as const;
      const ended = await lease.release(() => store.turns.end(end));
      tell("ended", { fencingToken: lease.fencingToken, releasedAtUs, kind: ended.kind });
    }
    process.stdin.unref();
    await close();
    break;
  }
  default:
    throw new Error(`no such mode: ${mode}`);
}
