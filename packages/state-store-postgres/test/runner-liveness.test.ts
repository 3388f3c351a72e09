import { systemHost } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import type { AcquireResult, OfferResult, OnBusy, Runner } from "@turnkeeper/state-store";
import type { PostgresStore } from "@turnkeeper/state-store-postgres";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { freshSchema, makeClockedSchema, noServer, serverUrl } from "./postgres-harness.ts";
import { openHandle } from "./scene.ts";

const runnerTtlMs = 30_000;
const sessionId = "session-1";

/** One process of a host of its own, whose timers run when it is told so: a process that is paused is not told. */
class FarProcess {
  readonly runner: Runner;
  readonly #store: PostgresStore;
  readonly #host: VirtualHost;

  constructor(name: string, store: PostgresStore, host: VirtualHost) {
    this.#store = store;
    this.#host = host;
    this.runner = { runnerId: `runner-${name}`, instanceId: name, host: name, bootId: `boot-${name}`, pid: 101 };
  }

  offer(inputId: string, onBusy: OnBusy = "wait"): Promise<OfferResult> {
    return this.#store.inbox.offer({ sessionId, inputId, text: `text of ${inputId}`, onBusy, runner: this.runner });
  }

  /** Asks for the session as the runner that it is. */
  claim(turnId: string): Promise<AcquireResult> {
    const { runnerId, ...identity } = this.runner;
    const holder = { ...identity, holderId: `holder of ${turnId}` };
    return this.#store.leases.acquire({ sessionId, holder, ttlMs: 600_000, begin: { turnId, runnerId } });
  }

  /** Its timers run for so long; what they had it say has arrived. */
  async lives(ms: number): Promise<void> {
    await this.#host.advance(ms);
    // It has one connection, on which this comes behind whatever is under way.
    await this.#store.leases.read(sessionId);
    await this.#store.leases.read(sessionId);
  }

  /** Whether something of it has a timer. */
  get hasTimers(): boolean {
    return this.#host.pendingTimerCount() > 0;
  }

  get store(): PostgresStore {
    return this.#store;
  }

  /** As the server sees it: its connections are gone, and it says nothing more. */
  dies(): Promise<void> {
    return this.#store.close();
  }
}

interface Scene {
  readonly a: FarProcess;
  readonly b: FarProcess;
  readonly admin: pg.Client;
  readonly schema: string;
  /** The server's clock goes on; no process is told. */
  passes(ms: number): Promise<void>;
}

async function makeScene(ttlMs: number = runnerTtlMs): Promise<Scene> {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  onTestFinished(() => admin.end());
  const schema = await makeClockedSchema(admin);
  const open = async (name: string): Promise<FarProcess> => {
    const host = virtualHost({ bootId: `boot-${name}` });
    const store = await openHandle(serverUrl, { schema, connectionsMax: 1, runnerTtlMs: ttlMs }, host);
    return new FarProcess(name, store, host);
  };
  return {
    a: await open("a"),
    b: await open("b"),
    admin,
    schema,
    passes: async (ms) =>
      void (await admin.query(
        `UPDATE "${schema}".virtual_clock SET clock_ms = clock_ms + ${ms}, wall_ms = wall_ms + ${ms}`,
      )),
  };
}

/** As a process that crashes between its offer and its claim leaves it; what another one's claim then gets. */
async function claimAfterADeath(ttlMs: number): Promise<{ readonly first: string; readonly later: AcquireResult }> {
  const { a, b, passes } = await makeScene(ttlMs);
  await a.offer("input-a");
  await a.dies();
  const first = await b.claim("turn-1");
  await passes(runnerTtlMs);
  return { first: first.kind, later: await b.claim("turn-2") };
}

/** Some statement waits for a lock of `admin`'s: other tests use this server too. */
async function waitingForALock(admin: pg.Client): Promise<void> {
  const text = "SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))";
  // The server keeps what it shows for as long as a transaction lasts.
  while ((await admin.query(text)).rows.length === 0) await admin.query("SELECT pg_stat_clear_snapshot()");
}

describe.skipIf(noServer)("inputs whose runner is on another host", () => {
  test("what a process that is gone was to run is run by another, and by one alone", async () => {
    const { first, later } = await claimAfterADeath(runnerTtlMs);
    expect(first).toBe("behind");
    expect(later).toMatchObject({ kind: "granted", input: { inputId: "input-a" } });
  });

  test("control: where nobody's silence counts, the input of a process that is gone waits for ever", async () => {
    const { later } = await claimAfterADeath(1e12);
    // Passed over after its claim period, as a sleeper is, and left where it was.
    expect(later).toEqual({ kind: "nothing-to-run" });
  });

  test("a process that says it lives keeps its input, however long it waits", async () => {
    const { a, b, passes } = await makeScene();
    await a.offer("input-a");
    for (let times = 0; times < 20; times++) {
      await passes(runnerTtlMs / 3);
      await a.lives(runnerTtlMs / 3);
      expect((await b.store.inbox.pending(sessionId))[0]?.runner).toEqual(a.runner);
      expect((await b.claim(`turn-${times}`)).kind).not.toBe("granted");
    }
    expect(await a.claim("turn-a")).toMatchObject({ kind: "granted", input: { inputId: "input-a" } });
  });

  test("a process that was paused has its input again, unless another took it meanwhile", async () => {
    const { a, b, passes } = await makeScene();
    await a.offer("input-1");
    await a.offer("input-2");
    await passes(runnerTtlMs);
    expect(await b.claim("turn-b")).toMatchObject({ kind: "granted", input: { inputId: "input-1" } });
    // It goes on: what is left is its own again, and what was taken is not.
    await a.lives(runnerTtlMs);
    expect(await a.claim("turn-a")).toMatchObject({ kind: "held" });
    expect(await a.store.inbox.read(sessionId, "input-1")).toMatchObject({ state: "taken", turnId: "turn-b" });
    expect(await b.store.inbox.read(sessionId, "input-2")).toMatchObject({ state: "pending", runner: a.runner });
  });

  test("it claims its own before it has said that it lives: who asks lives", async () => {
    const { a, b, passes } = await makeScene();
    await a.offer("input-a");
    await b.offer("input-b");
    await passes(runnerTtlMs - 1);
    await b.lives(runnerTtlMs / 3);
    await passes(1);
    // Were it an orphan to itself it would stand behind the other, who came later.
    expect(await a.claim("turn-a")).toMatchObject({ kind: "granted", input: { inputId: "input-a" } });
  });

  test("the head that is gone is passed over at once, without a claim period of its own", async () => {
    const { a, b, passes } = await makeScene();
    await a.offer("input-a");
    await b.offer("input-b");
    await passes(runnerTtlMs - 1);
    await b.lives(runnerTtlMs / 3);
    expect(await b.claim("turn-1")).toMatchObject({ kind: "behind", head: { inputId: "input-a" } });
    await passes(1);
    // The oldest that may be run: the other's, which is an orphan now.
    expect(await b.claim("turn-2")).toMatchObject({ kind: "granted", input: { inputId: "input-a" } });
  });

  test("nobody is refused, and nobody leaves a message, because of a process that is gone", async () => {
    const { a, b, passes } = await makeScene();
    await a.offer("input-a");
    expect((await b.offer("input-b", "reject")).kind).toBe("busy");
    await passes(runnerTtlMs);
    expect(await b.offer("input-b", "reject")).toMatchObject({ kind: "accepted", input: { runner: b.runner } });
    // Offered again by another, what it was to run is that one's.
    expect(await b.offer("input-a")).toMatchObject({ kind: "known", input: { state: "pending", runner: b.runner } });
    expect(await a.store.inbox.abandon(sessionId, a.runner.runnerId)).toBe(0);
  });

  test("a process with nothing that waits says nothing", async () => {
    const { a, passes } = await makeScene();
    expect(a.hasTimers).toBe(false);
    await a.offer("input-a");
    expect(a.hasTimers).toBe(true);
    await a.store.inbox.withdraw(sessionId, "input-a", "cancelled");
    await passes(runnerTtlMs / 3);
    await a.lives(runnerTtlMs / 3);
    expect(a.hasTimers).toBe(false);
  });

  test("to say so waits for no lock that a writer holds, and is said again", async () => {
    const { a, b, passes, admin, schema } = await makeScene();
    await a.offer("input-a");
    await passes(runnerTtlMs / 3);
    await admin.query(`BEGIN; SELECT FROM "${schema}".input FOR UPDATE`);
    await a.lives(runnerTtlMs / 3);
    await admin.query("COMMIT");
    await passes(runnerTtlMs / 3);
    await a.lives(runnerTtlMs / 3);
    await passes((runnerTtlMs * 2) / 3);
    expect((await b.store.inbox.pending(sessionId))[0]?.runner).toEqual(a.runner);
  });

  test("a writer that had read the input before its runner said that it lives does not undo that", async () => {
    const { a, b, admin, passes, schema } = await makeScene();
    await a.offer("input-a");
    await passes(runnerTtlMs / 3);
    // The other's claim is refused, and begins the claim period: it writes the row as it had read it.
    await admin.query(`BEGIN; SELECT FROM "${schema}".lease FOR UPDATE`);
    const claiming = b.claim("turn-b");
    await waitingForALock(admin);
    await a.lives(runnerTtlMs / 3);
    await admin.query("COMMIT");
    expect((await claiming).kind).toBe("behind");
    await passes((runnerTtlMs * 2) / 3);
    expect((await b.store.inbox.pending(sessionId))[0]?.runner).toEqual(a.runner);
  });

  test("by the server's own clock: an input of a handle that was closed becomes anybody's in its time", async () => {
    const schema = freshSchema();
    const [a, b] = await Promise.all([1, 2].map(() => openHandle(serverUrl, { schema, runnerTtlMs: 100 }, systemHost)));
    if (!a || !b) throw new Error("A store is missing.");
    const runner = { runnerId: "r", instanceId: "a", host: "a", bootId: "a", pid: 1 };
    await a.inbox.offer({ sessionId, inputId: "i", text: "t", onBusy: "wait", runner });
    await a.close();
    const admin = new pg.Client({ connectionString: serverUrl });
    await admin.connect();
    onTestFinished(() => admin.end());
    await admin.query("SELECT pg_sleep(0.1)");
    expect((await b.inbox.pending(sessionId))[0]?.runner).toBeUndefined();
  });
});
