/** What the tests share: one store, virtual processes around it, and a store that can be made to fail. */
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import type { PeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { CodedError } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost, VirtualHostOptions } from "@turnkeeper/kernel/testing";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { AcquireRequest, Grant, LeaseStore, OnBusy, Runner, StateStore } from "@turnkeeper/state-store";
import { acquireTurnLease } from "@turnkeeper/turn-lease";
import type {
  GrantedLease,
  ProcessPresence,
  TurnLeaseDeps,
  TurnLeaseOptions,
  TurnLeaseResult,
} from "@turnkeeper/turn-lease";
import { virtualProcesses } from "@turnkeeper/turn-lease/testing";
import type { VirtualProcess } from "@turnkeeper/turn-lease/testing";
import { expect } from "vitest";
import { stoppableHost } from "./stoppable-host.ts";
import type { StoppableHost } from "./stoppable-host.ts";

export const session = "session-1";

type LeaseMethod = keyof LeaseStore;

/** A lease store in front of another: it counts calls, and fails or parks them as told. */
export interface TamperedLeases extends LeaseStore {
  readonly callCounts: Record<LeaseMethod, number>;
  readonly acquires: AcquireRequest[];
  /** The calls of this method fail until told otherwise. `afterwards`: the store does it, and its answer is lost. */
  fail(method: LeaseMethod, code: string | undefined, when?: "before" | "afterwards"): void;
  /** The next call of this method reaches the store when `resume` is called; with `answer`, it is the answer that waits. */
  park(method: LeaseMethod, what?: "call" | "answer"): { readonly arrived: Promise<void>; resume(): void };
}

export function tamper(store: LeaseStore): TamperedLeases {
  const failures = new Map<LeaseMethod, { code: string; when: "before" | "afterwards" }>();
  const parked = new Map<LeaseMethod, { what: "call" | "answer"; arrive(): void; readonly resumed: Promise<void> }>();
  const callCounts: Record<LeaseMethod, number> = { acquire: 0, renew: 0, release: 0, read: 0 };
  const acquires: AcquireRequest[] = [];
  const through = async <Answer>(method: LeaseMethod, call: () => Promise<Answer>): Promise<Answer> => {
    callCounts[method]++;
    const failure = failures.get(method);
    const parking = parked.get(method);
    parked.delete(method);
    if (parking?.what === "call") {
      parking.arrive();
      await parking.resumed;
    }
    if (failure?.when === "before") throw new CodedError(failure.code, `tampered ${method}`);
    const answer = await call();
    if (parking?.what === "answer") {
      parking.arrive();
      await parking.resumed;
    }
    if (failure) throw new CodedError(failure.code, `tampered ${method}`);
    return answer;
  };
  return {
    callCounts,
    acquires,
    acquire: (request) => {
      acquires.push(request);
      return through("acquire", () => store.acquire(request));
    },
    renew: (grant, ttlMs) => through("renew", () => store.renew(grant, ttlMs)),
    release: (grant) => through("release", () => store.release(grant)),
    read: (sessionId) => through("read", () => store.read(sessionId)),
    fail: (method, code, when = "before") => {
      if (code === undefined) failures.delete(method);
      else failures.set(method, { code, when });
    },
    park: (method, what = "call") => {
      let arrive = (): void => {};
      let resume = (): void => {};
      const arrived = new Promise<void>((resolve) => (arrive = resolve));
      const resumed = new Promise<void>((resolve) => (resume = resolve));
      parked.set(method, { what, arrive, resumed });
      return { arrived, resume };
    },
  };
}

/** One process of the scene. */
export interface Actor {
  readonly process: VirtualProcess;
  readonly scheduler: PeriodicScheduler;
  readonly leases: TamperedLeases;
  readonly deps: TurnLeaseDeps;
  readonly runner: Runner;
  acquire(options?: TurnLeaseOptions): Promise<TurnLeaseResult>;
  /** Acquires, and must be granted. */
  take(options?: TurnLeaseOptions): Promise<GrantedLease>;
  /** Stores an input that this actor's runner will run. */
  offer(inputId: string, onBusy?: OnBusy): Promise<void>;
  /** As `begin` of the options: a turn of this actor's runner. */
  begin(turnId: string): { readonly begin: { readonly turnId: string; readonly runnerId: string } };
  /** Its process ends as by SIGKILL: others find it dead, and nothing of it runs any more. */
  kill(): void;
}

export interface Scene {
  readonly host: VirtualHost;
  readonly store: StateStore;
  /** Starts a process; `see` replaces how it sees others. */
  start(name: string, see?: Partial<Pick<ProcessPresence, "probe" | "wake">>): Actor;
  /** Ends all schedulers and looks whether anything is left. */
  close(): Promise<void>;
  /** Ends every process where it stands, whatever it holds: for a test that looks at the middle of things. */
  switchOff(): Promise<void>;
}

export function scene(options: VirtualHostOptions = {}): Scene {
  const host = virtualHost(options);
  const store = createMemoryStore({ host });
  const processes = virtualProcesses({ host });
  const schedulers: PeriodicScheduler[] = [];
  const hosts: StoppableHost[] = [];
  return {
    host,
    store,
    start(name, see = {}) {
      const own = processes.start({ instanceId: name });
      const ownHost = stoppableHost(host);
      hosts.push(ownHost);
      const presence: ProcessPresence = {
        identity: own.identity,
        register: (id) => own.register(id),
        reportStatus: (id, read) => own.reportStatus(id, read),
        statusOf: (target, id) => own.statusOf(target, id),
        onWake: (sessionId, listener) => own.onWake(sessionId, listener),
        probe: (target, id) => own.probe(target, id),
        wake: (target, sessionId, id) => own.wake(target, sessionId, id),
        close: () => own.close(),
        ...see,
      };
      const scheduler = createPeriodicScheduler({ host: ownHost }, { slackMs: 0 });
      schedulers.push(scheduler);
      const leases = tamper(store.leases);
      const deps = { store: leases, inbox: store.inbox, scheduler, host: ownHost, presence };
      const runner: Runner = { ...own.identity, runnerId: `runner-${name}` };
      own.register(runner.runnerId);
      const acquire: Actor["acquire"] = (wanted) => acquireTurnLease(deps, session, wanted);
      return {
        process: own,
        scheduler,
        leases,
        deps,
        runner,
        acquire,
        async take(wanted) {
          const result = await acquire(wanted);
          if (result.kind !== "granted") throw new Error(`${name} was answered ${result.kind}`);
          return result;
        },
        async offer(inputId, onBusy = "wait") {
          const offered = await store.inbox.offer({ sessionId: session, inputId, text: inputId, onBusy, runner });
          expect(offered.kind).toBe("accepted");
        },
        begin: (turnId) => ({ begin: { turnId, runnerId: runner.runnerId } }),
        kill: () => {
          own.kill();
          ownHost.kill();
        },
      };
    },
    async close() {
      for (const scheduler of schedulers) await scheduler.close();
      expect(host.pendingTimerCount()).toBe(0);
    },
    async switchOff() {
      for (const one of hosts) one.kill();
      for (const scheduler of schedulers) await scheduler.close();
    },
  };
}

/** Whose the session is in the store, past any tampering. */
export async function holderIdOf(store: StateStore): Promise<string | undefined> {
  return (await store.leases.read(session))?.holder.holderId;
}

/** Another process takes the session over, as after an expiry. */
export async function usurp(store: StateStore, grant: Grant): Promise<void> {
  const holder = { instanceId: "usurper", host: "elsewhere", bootId: "virtual-boot", pid: 7, holderId: "usurper" };
  const answer = await store.leases.acquire({ sessionId: session, holder, ttlMs: 60_000, reclaim: grant });
  expect(answer.kind).toBe("granted");
}

/** What a promise has come to, without waiting for it. */
export function watch<Value>(promise: Promise<Value>): {
  value?: Value;
  error?: unknown;
  readonly settled: Promise<void>;
} {
  const watched: { value?: Value; error?: unknown; settled: Promise<void> } = {
    settled: promise.then(
      (value) => void (watched.value = value),
      (error: unknown) => void (watched.error = error),
    ),
  };
  return watched;
}
