import { CodedError } from "@turnkeeper/kernel";
import { createProgressClock } from "@turnkeeper/turn-liveness";
import { acquireTurnLease, openProcessPresence } from "@turnkeeper/turn-lease";
import type { ProcessPresence, TurnLease } from "@turnkeeper/turn-lease";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withTurn } from "../src/index.ts";
import type { TurnEnding } from "../src/turn-ending.ts";
import { conductTurn } from "../src/turn-machinery.ts";
import type { ConductedTurn, TurnDeps, TurnScope } from "../src/turn-machinery.ts";
import { createBench } from "./bench.ts";
import type { Bench } from "./bench.ts";

let bench: Bench;
let presence: ProcessPresence;
let registrationCount = 0;

/** Counts what was registered with the process and not disposed. */
function counted(registration: Disposable): Disposable {
  registrationCount++;
  let isDisposed = false;
  return {
    [Symbol.dispose]: () => {
      if (!isDisposed) registrationCount--;
      isDisposed = true;
      registration[Symbol.dispose]();
    },
  };
}

beforeEach(async () => {
  bench = createBench();
  registrationCount = 0;
  const real = await openProcessPresence({ host: bench.host });
  presence = {
    identity: real.identity,
    register: (id) => counted(real.register(id)),
    probe: (target, id) => real.probe(target, id),
    wake: (target, sessionId, id) => real.wake(target, sessionId, id),
    statusOf: (target, id) => real.statusOf(target, id),
    reportStatus: (id, read) => counted(real.reportStatus(id, read)),
    close: () => real.close(),
    onWake: (sessionId, listener) => counted(real.onWake(sessionId, listener)),
  };
});
afterEach(async () => {
  await presence.close();
  await bench.close();
});

interface Running {
  readonly lease: TurnLease;
  readonly conducted: Promise<ConductedTurn>;
  readonly scope: () => TurnScope;
}

/** Begins a turn on the session and runs `body` in it. */
async function begin(
  body: (scope: TurnScope) => Promise<TurnEnding>,
  change: Partial<TurnDeps> = {},
): Promise<Running> {
  const { host, store, scheduler } = bench;
  const deps: TurnDeps = { host, store, scheduler, presence, ...change };
  const runner = { runnerId: "runner", ...presence.identity };
  await store.inbox.offer({ sessionId: "s", inputId: "i", text: "go", onBusy: "wait", runner });
  const result = await acquireTurnLease({ store: deps.store.leases, scheduler, host, presence }, "s", {
    ttlMs: 60_000,
    renewEveryMs: 10_000,
    begin: { turnId: "t", runnerId: "runner" },
  });
  if (result.kind !== "granted") throw new Error(`The session is ${result.kind}.`);
  const clock = createProgressClock({ host });
  let scope: TurnScope | undefined;
  const conducted = conductTurn(
    deps,
    { lease: result.lease, turnId: "t", clock },
    { liveness: { timeoutMs: 30_000, pollMs: 1000 } },
    { onStalled: () => {}, onResumed: () => {} },
    (one) => {
      scope = one;
      return body(one);
    },
  );
  return {
    lease: result.lease,
    conducted,
    scope: () => {
      if (!scope) throw new Error("The body has not begun.");
      return scope;
    },
  };
}

async function ended(running: Running): Promise<ConductedTurn> {
  let conducted: ConductedTurn | undefined;
  void running.conducted.then((one) => (conducted = one));
  for (let step = 0; !conducted && step < 2000; step++) await bench.host.advance(50);
  if (!conducted) throw new Error("The turn does not end.");
  await bench.host.settle();
  return conducted;
}

const until = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });

const never = (): Promise<TurnEnding> => new Promise(() => {});

describe("TURN-1: however a turn ends, every waiter settles and nothing is left", () => {
  it.each<
    [
      string,
      (scope: TurnScope) => Promise<TurnEnding>,
      ((running: Running) => Promise<unknown>) | undefined,
      Partial<TurnEnding>,
    ]
  >([
    ["it answers", async () => ({ outcome: "answered" }), undefined, { outcome: "answered" }],
    ["it throws", () => Promise.reject(new Error("bug")), undefined, { outcome: "failed", reason: "INTERNAL" }],
    [
      "it fails with a code",
      () => Promise.reject(new CodedError("MODEL_AUTH", "no")),
      undefined,
      { outcome: "failed", reason: "MODEL_AUTH" },
    ],
    [
      "it is stopped",
      (scope) => until(scope.interrupt.signal),
      (running) => running.scope().interrupt.interrupt({ hard: false, reason: "user-stop", by: "test" }),
      { outcome: "interrupted", reason: "user-stop" },
    ],
    [
      "it ignores a hard stop",
      never,
      (running) => running.scope().interrupt.interrupt({ hard: true, reason: "user-stop", by: "test" }),
      { outcome: "interrupted", reason: "user-stop" },
    ],
    ["it never settles and says nothing", never, undefined, { outcome: "interrupted", reason: "stalled" }],
    [
      "its lease is taken",
      (scope) => until(scope.interrupt.signal),
      (running) => bench.store.turns.settleForeign(running.lease.grant),
      { outcome: "interrupted", reason: "lease-lost" },
    ],
  ])("%s", async (_how, body, act, ending) => {
    const before = bench.host.pendingTimerCount();
    const running = await begin(body);
    await bench.host.settle();
    await act?.(running);
    expect((await ended(running)).ending).toMatchObject(ending);
    expect(await bench.store.leases.read("s")).toBeUndefined();
    expect(await bench.store.turns.running()).toEqual([]);
    expect(registrationCount).toBe(0);
    expect(bench.host.pendingTimerCount()).toBe(before);
  });

  /** A port that refuses one of its methods. */
  const refusing = <Port extends object>(port: Port, method: keyof Port): Port =>
    new Proxy(port, {
      get: (target, name): unknown =>
        name === method
          ? () => Promise.reject(new CodedError("STORE_FULL", "The disk is full."))
          : Reflect.get(target, name),
    });

  it("the store refuses the end and the release: the lease is let go, so that others find it leaked", async () => {
    const turns = refusing(bench.store.turns, "end");
    const store = { ...bench.store, turns, leases: refusing(bench.store.leases, "release") };
    const running = await begin(async () => ({ outcome: "answered" }), { store });
    expect((await ended(running)).ending).toMatchObject({ outcome: "failed", reason: "STORE_FULL" });
    expect(registrationCount).toBe(0);
    await expect(running.lease.confirm()).rejects.toMatchObject({ code: "LEASE_LOST" });
  });

  it("the store refuses the end and takes the release: the end comes with it, and the turn ended as it was told", async () => {
    const store = { ...bench.store, turns: refusing(bench.store.turns, "end") };
    const running = await begin(async () => ({ outcome: "answered" }), { store });
    expect((await ended(running)).ending).toMatchObject({ outcome: "answered" });
    expect(await bench.store.turns.read("s", "t")).toMatchObject({ state: "ended", outcome: "answered" });
    expect(await bench.store.leases.read("s")).toBeUndefined();
    expect(registrationCount).toBe(0);
  });
});

it.each([
  ["an empty input", "s", "", "INPUT_EMPTY"],
  ["a session id that is none", "no id!", "go", "SESSION_ID_INVALID"],
])("TURN-1: withTurn refuses %s and leaves nothing behind", async (_what, sessionId, input, code) => {
  const { host, store, scheduler } = bench;
  const refused = withTurn({ host, store, scheduler, presence }, sessionId, input, async () => {});
  const told = refused.catch((error: unknown) => error);
  await host.advance(10);
  expect(await told).toMatchObject({ code });
  expect(registrationCount).toBe(0);
  await host.advance(120_000);
  expect(host.pendingTimerCount()).toBe(0);
});

it("TURN-1 control: without the grace that leaves a body behind, a body that never settles keeps its turn for ever", async () => {
  const { host } = bench;
  const patient = {
    ...host,
    timers: {
      ...host.timers,
      after: (ms: number, fn: () => void) => (ms === 10_000 ? () => {} : host.timers.after(ms, fn)),
    },
  };
  const running = await begin(never, { host: patient });
  await host.settle();
  void running.scope().interrupt.interrupt({ hard: true, reason: "user-stop", by: "test" });
  let isEnded = false;
  void running.conducted.then(() => (isEnded = true));
  await host.advance(600_000);
  expect(isEnded).toBe(false);
  expect(await bench.store.turns.running()).toHaveLength(1);
  expect(host.pendingTimerCount()).toBeGreaterThan(0);
  // No such process is left to the next test.
  host.reboot();
});
