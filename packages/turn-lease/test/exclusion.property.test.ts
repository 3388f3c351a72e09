/**
 * Random schedules of four processes on one session: they are stopped, continued and killed, the machine sleeps, the
 * wall clock steps, the store fails before or after its work, evidence comes and goes. Checked at every step: nobody
 * acts after the next was granted, nobody living is robbed, whoever is dead does not hold up the others.
 */
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { CodedError } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { LeaseStore, StateStore } from "@turnkeeper/state-store";
import { acquireTurnLease } from "@turnkeeper/turn-lease";
import type { TurnLease } from "@turnkeeper/turn-lease";
import { virtualProcesses } from "@turnkeeper/turn-lease/testing";
import type { VirtualProcess, VirtualProcesses } from "@turnkeeper/turn-lease/testing";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { stoppableHost } from "./stoppable-host.ts";
import type { StoppableHost } from "./stoppable-host.ts";

const sessionId = "s";
const ttlMs = 10_000;
const pollMs = 500;

const who = fc.nat({ max: 3 });
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 4_000 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("stop" as const), who }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("continue" as const), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill" as const), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("sleep" as const), ms: fc.integer({ min: 1, max: 15_000 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("step wall" as const), ms: fc.integer({ min: -1e8, max: 1e8 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("store" as const),
      who,
      fault: fc.constantFrom("none", "busy", "unknown outcome", "slow answers"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("evidence" as const), who, has: fc.constantFrom(false, false, true) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("end turn" as const), who }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const outcomes = [
  "granted",
  "acted",
  "acted after a stop",
  "renewed",
  "reclaimed dead",
  "reclaimed leaked",
  "taken expired",
  "replaced",
  "unconfirmed",
  "withheld",
  "released",
  // What happened to a session while somebody had it.
  "holder killed",
  "holder stopped",
  "slept",
  "wall clock stepped",
  "renewal refused",
  "answer of a renewal lost",
] as const;
type Reached = Record<(typeof outcomes)[number], number>;

/** Everything that happened to the session, as the store saw it. */
class History {
  readonly reached: Reached;
  readonly #host: VirtualHost;
  readonly #store: StateStore;
  readonly #workers = new Map<string, Worker>();
  grantedToken = 0;
  #holder: { worker: Worker; expiresBootMs: number; isReleased: boolean; isLeaked: boolean } | undefined;

  constructor(host: VirtualHost, store: StateStore, reached: Reached) {
    this.#host = host;
    this.#store = store;
    this.reached = reached;
  }

  add(worker: Worker): void {
    this.#workers.set(worker.process.identity.instanceId, worker);
  }

  get store(): LeaseStore {
    return this.#store.leases;
  }

  granted(instanceId: string, fencingToken: number): void {
    const worker = this.#workers.get(instanceId);
    if (!worker) throw new Error(`unknown ${instanceId}`);
    const last = this.#holder;
    if (fencingToken !== this.grantedToken) {
      expect(fencingToken).toBeGreaterThan(this.grantedToken);
      if (last && !last.isReleased) {
        const isExpired = this.#host.clock.bootMs() >= last.expiresBootMs;
        // Whoever lives and knows of its lease is never robbed.
        expect({ isExpired, isDead: last.worker.host.isDead, isLeaked: last.isLeaked }).not.toEqual({
          isExpired: false,
          isDead: false,
          isLeaked: false,
        });
        this.reached[isExpired ? "taken expired" : last.isLeaked ? "reclaimed leaked" : "reclaimed dead"]++;
      }
      this.reached.granted++;
      this.grantedToken = fencingToken;
    }
    this.#holder = { worker, expiresBootMs: this.#host.clock.bootMs() + ttlMs, isReleased: false, isLeaked: false };
  }

  renewed(fencingToken: number): void {
    expect(fencingToken).toBe(this.grantedToken);
    if (this.#holder) this.#holder.expiresBootMs = this.#host.clock.bootMs() + ttlMs;
    this.reached.renewed++;
  }

  /** Whether `worker`, or anybody, has the session and has not let go of it. */
  isHeld(worker?: Worker): boolean {
    const held = this.#holder;
    return held !== undefined && !held.isReleased && !held.isLeaked && (!worker || held.worker === worker);
  }

  freed(): void {
    if (this.#holder) this.#holder.isReleased = true;
  }

  leaked(worker: Worker): void {
    if (this.#holder?.worker === worker) this.#holder.isLeaked = true;
  }

  acted(lease: TurnLease): void {
    // The rule itself: no side effect of a grant after the next one.
    expect(lease.fencingToken).toBe(this.grantedToken);
    this.reached.acted++;
  }
}

/** One process: it wants the session again and again, and acts once a second while it has it. */
class Worker {
  readonly host: StoppableHost;
  readonly process: VirtualProcess;
  fault = "none";
  hasEvidence = true;
  wantsToEnd = false;
  isOver = false;
  wasStopped = false;
  readonly #history: History;
  readonly #scheduler;
  readonly #ending = new AbortController();

  constructor(machine: VirtualHost, processes: VirtualProcesses, history: History, name: string) {
    this.host = stoppableHost(machine);
    this.process = processes.start({ instanceId: name });
    this.#history = history;
    this.#scheduler = createPeriodicScheduler({ host: this.host }, { slackMs: 0 });
    history.add(this);
  }

  /** The store as this process reaches it. What the store does is done, whether its answer arrives or not. */
  #call<Value>(work: () => Promise<Value>): Promise<Value> {
    const { fault } = this;
    const through = async (): Promise<Value> => {
      if (fault === "busy") throw new CodedError("STORE_BUSY", "busy");
      const value = await work();
      if (fault === "unknown outcome") throw new CodedError("STORE_IO", "who knows");
      if (fault === "slow answers") await new Promise<void>((resolve) => void this.host.timers.after(3_000, resolve));
      return value;
    };
    return this.host.answer(through());
  }

  get #store(): LeaseStore {
    const { store } = this.#history;
    return {
      acquire: (request) =>
        this.#call(async () => {
          const answer = await store.acquire(request);
          if (answer.kind === "granted") this.#history.granted(request.holder.instanceId, answer.fencingToken);
          return answer;
        }),
      renew: (grant, ms) => {
        if (this.fault === "busy") this.#history.reached["renewal refused"]++;
        return this.#call(async () => {
          const answer = await store.renew(grant, ms);
          if (answer.kind === "renewed") this.#history.renewed(grant.fencingToken);
          if (this.fault === "unknown outcome") this.#history.reached["answer of a renewal lost"]++;
          return answer;
        });
      },
      release: (grant) =>
        this.#call(async () => {
          const answer = await store.release(grant);
          if (answer.kind === "released") this.#history.freed();
          return answer;
        }),
      read: (id) => this.#call(() => store.read(id)),
    };
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.host.timers.after(ms, resolve));
  }

  async run(): Promise<void> {
    while (!this.isOver) {
      try {
        const deps = { store: this.#store, scheduler: this.#scheduler, host: this.host, presence: this.process };
        const options = {
          ttlMs,
          renewEveryMs: 2_000,
          pollMs,
          waitMs: 20_000,
          signal: this.#ending.signal,
          mayRenew: () => this.hasEvidence,
        };
        const result = await acquireTurnLease(deps, sessionId, options);
        if (result.kind === "granted") await this.#turn(result.lease);
      } catch (error) {
        if (!CodedError.is(error, "STORE_IO") && !CodedError.is(error, "STORE_BUSY")) throw error;
        // What was granted without our knowing is leaked now.
        this.#history.leaked(this);
      }
      await this.#pause(100);
    }
  }

  async #turn(lease: TurnLease): Promise<void> {
    try {
      for (this.wantsToEnd = false; !this.wantsToEnd && !this.isOver;) {
        await lease.confirm();
        this.#history.acted(lease);
        if (this.wasStopped) this.#history.reached["acted after a stop"]++;
        this.wasStopped = false;
        await this.#pause(1_000);
      }
    } catch (error) {
      if (!CodedError.is(error, "LEASE_LOST")) throw error;
      expect(lease.lost.reason).toBe(error);
      const cause = error.context["cause"];
      if (cause === "replaced" || cause === "unconfirmed" || cause === "withheld") this.#history.reached[cause]++;
    }
    // From here on this process answers `unknown-here`, or frees the row.
    await lease[Symbol.asyncDispose]().catch(() => {});
    this.#history.leaked(this);
    this.#history.reached.released++;
  }

  end(): void {
    this.isOver = true;
    this.#ending.abort();
  }

  async close(): Promise<void> {
    await this.#scheduler.close();
  }
}

async function play(steps: readonly Step[], reached: Reached): Promise<void> {
  const machine = virtualHost();
  const store = createMemoryStore({ host: machine });
  const processes = virtualProcesses({ host: machine });
  const history = new History(machine, store, reached);
  const failures: unknown[] = [];
  const workers: Worker[] = [];
  const startWorker = (name: string): Worker => {
    const worker = new Worker(machine, processes, history, name);
    worker.run().catch((error: unknown) => void failures.push(error));
    return worker;
  };
  for (let index = 0; index < 4; index++) workers.push(startWorker(`worker-${index}`));
  for (const [index, one] of steps.entries()) {
    const worker = "who" in one ? workers[one.who] : undefined;
    // What has begun is done before the machine is touched: the history's clock is the store's.
    await machine.settle();
    if (history.isHeld()) {
      if (one.kind === "sleep") reached.slept++;
      if (one.kind === "step wall") reached["wall clock stepped"]++;
    }
    if (worker && history.isHeld(worker) && !worker.host.isDead) {
      if (one.kind === "kill") reached["holder killed"]++;
      if (one.kind === "stop") reached["holder stopped"]++;
    }
    if (one.kind === "advance") await machine.advance(one.ms);
    else if (one.kind === "sleep") machine.suspend(one.ms);
    else if (one.kind === "step wall") machine.jumpWall(one.ms);
    else if (worker && one.kind === "stop") {
      worker.wasStopped = true;
      worker.host.stop();
      worker.process.stop();
    } else if (worker && one.kind === "continue") {
      worker.process.continue();
      worker.host.continue();
    } else if (worker && one.kind === "kill") {
      worker.host.kill();
      worker.process.kill();
      // Somebody starts it again: another instance.
      workers[workers.indexOf(worker)] = startWorker(`restarted-${index}`);
    } else if (worker && one.kind === "store") worker.fault = one.fault;
    else if (worker && one.kind === "evidence") worker.hasEvidence = one.has;
    else if (worker && one.kind === "end turn") worker.wantsToEnd = true;
    if (failures.length > 0) throw failures[0];
  }
  // Whatever happened: with the store healthy and everybody running, the session is free for the next within a poll or
  // two of whoever has it now ending, and nothing is left.
  for (const worker of workers) {
    worker.fault = "none";
    worker.process.continue();
    worker.host.continue();
    worker.end();
  }
  await machine.advance(ttlMs);
  if (failures.length > 0) throw failures[0];
  const last = startWorker("last");
  const tokenBefore = history.grantedToken;
  await machine.advance(3 * pollMs);
  expect(history.grantedToken).toBeGreaterThan(tokenBefore);
  last.end();
  await machine.advance(ttlMs);
  for (const worker of [...workers, last]) await worker.close();
  if (failures.length > 0) throw failures[0];
}

test("whatever stops, dies, sleeps or fails: no side effect after the next grant, nobody living robbed, nobody stuck", async () => {
  const reached = Object.fromEntries(outcomes.map((outcome) => [outcome, 0])) as Reached;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), (steps) => play(steps, reached)),
    { numRuns: 100 },
  );
  expect(outcomes.filter((outcome) => reached[outcome] <= 3)).toEqual([]);
}, 120_000);
