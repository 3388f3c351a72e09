import { getEventListeners } from "node:events";
import { CodedError } from "@turnkeeper/kernel";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { AcquireResult, MemoryStore } from "@turnkeeper/state-store";
import type { ProcessPresence, TurnLease } from "@turnkeeper/turn-lease";
import { createProgressClock } from "@turnkeeper/turn-liveness";
import type { ProgressClock } from "@turnkeeper/turn-liveness";
import { expect, test } from "vitest";
import type { TurnEnding } from "../src/turn-ending.ts";
import { conductTurn } from "../src/turn-machinery.ts";
import type { ConductedTurn, TurnScope } from "../src/turn-machinery.ts";

const identity = { instanceId: "i", host: "here", bootId: "boot", pid: 1 };
const answered: TurnEnding = { outcome: "answered" };
const liveness = { timeoutMs: 1_000, pollMs: 100 };

interface Stage {
  readonly host: VirtualHost;
  readonly store: MemoryStore;
  readonly clock: ProgressClock;
  readonly wakeListeners: Set<() => void>;
  readonly endedMarkers: unknown[];
  readonly log: string[];
  loseLease(): void;
  lossListenerCount(): number;
  /** What the lease does while it is asked whether it holds. */
  onConfirm: () => Promise<void>;
  conduct(body: (scope: TurnScope) => Promise<TurnEnding>): Promise<ConductedTurn>;
}

/** One turn that has begun in a memory store, under a lease that does as it is told. */
async function stage(): Promise<Stage> {
  const host = virtualHost();
  const store = createMemoryStore({ host });
  const holder = { ...identity, holderId: "h" };
  const runner = { ...identity, runnerId: "r" };
  await store.inbox.offer({ sessionId: "s", inputId: "i1", text: "hello", onBusy: "wait", runner });
  const begin = { turnId: "t1", runnerId: "r" };
  const granted: AcquireResult = await store.leases.acquire({ sessionId: "s", holder, ttlMs: 300_000, begin });
  if (granted.kind !== "granted") throw new Error(`The turn could not begin: ${granted.kind}.`);
  const { fencingToken } = granted;
  const loss = new AbortController();
  const log: string[] = [];
  const wakeListeners = new Set<() => void>();
  const endedMarkers: unknown[] = [];
  const grant = { sessionId: "s", holderId: "h", fencingToken };
  const lease: TurnLease = {
    sessionId: "s",
    grant,
    fencingToken,
    lost: loss.signal,
    confirm: async () => {
      await scene.onConfirm();
      loss.signal.throwIfAborted();
    },
    stopRenewal: () => void log.push("renewal stopped"),
    release: async <Result>(write?: () => Promise<Result>) => {
      if (loss.signal.aborted || !write) return { kind: "lost" as const };
      return await write();
    },
    [Symbol.asyncDispose]: async () => void log.push("lease let go"),
  };
  const presence: ProcessPresence = {
    identity,
    register: () => ({ [Symbol.dispose]: () => {} }),
    probe: async () => "active",
    wake: async () => "woken",
    statusOf: async () => undefined,
    reportStatus: () => ({ [Symbol.dispose]: () => {} }),
    onWake: (_sessionId, listener) => {
      wakeListeners.add(listener);
      return { [Symbol.dispose]: () => void wakeListeners.delete(listener) };
    },
    close: async () => {},
  };
  const scheduler = createPeriodicScheduler({ host });
  const clock = createProgressClock({ host });
  const deps = {
    store,
    host,
    scheduler,
    presence,
    endProcesses: async (marker: unknown) => void endedMarkers.push(marker),
  };
  const scene: Stage = {
    host,
    store,
    clock,
    wakeListeners,
    endedMarkers,
    log,
    lossListenerCount: () => getEventListeners(loss.signal, "abort").length,
    loseLease: () => loss.abort(new CodedError("LEASE_LOST", "The lease is gone.")),
    onConfirm: async () => {},
    conduct: async (body) => {
      const observer = { onStalled: () => {}, onResumed: () => {} };
      return await conductTurn(deps, { lease, turnId: "t1", clock }, { liveness }, observer, body);
    },
  };
  return scene;
}

/** A body that runs until it is stopped hard, and then ends as it was told to. */
function untilStopped({ interrupt }: TurnScope): Promise<never> {
  return new Promise((_resolve, reject) => {
    interrupt.hardSignal.addEventListener("abort", () => reject(interrupt.hardSignal.reason as Error), { once: true });
  });
}

function codeOf(error: unknown): string {
  return CodedError.is(error) ? error.code : String(error);
}

test("INT-3: a lost lease stops its turn hard, whatever the turn does", async () => {
  const scene = await stage();
  let interrupt: TurnScope["interrupt"] | undefined;
  const done = scene.conduct(async (scope) => {
    interrupt = scope.interrupt;
    scope.clock.declareWait({ kind: "tool", name: "shell", boundMs: 60_000 });
    return await untilStopped(scope);
  });
  await scene.host.settle();
  scene.loseLease();
  // At once: not when the turn is left behind.
  expect(interrupt?.current).toMatchObject({ hard: true, reason: "lease-lost" });
  await scene.host.advance(10);
  expect((await done).ending).toMatchObject({ outcome: "interrupted", reason: "lease-lost" });
  expect(scene.host.pendingTimerCount()).toBe(0);
});

test("LIVE-2: progress between the watchdog's judgement and its stop saves the turn: the stop carries the claim", async () => {
  const scene = await stage();
  let end: (() => void) | undefined;
  const done = scene.conduct(async ({ fence, clock }) => {
    const commit = fence.begin();
    // The watchdog waits for this commit with its claim reserved; then the turn moves.
    await new Promise<void>((resolve) => scene.host.timers.after(1_500, resolve));
    clock.progress("compaction");
    commit?.finish();
    await new Promise<void>((resolve) => {
      end = resolve;
    });
    return answered;
  });
  await scene.host.advance(1_900);
  end?.();
  expect((await done).ending).toEqual(answered);
});

test("a stall that was stopped withdraws the renewal", async () => {
  const scene = await stage();
  const done = scene.conduct(untilStopped);
  await scene.host.advance(2_000);
  expect((await done).ending).toMatchObject({ outcome: "interrupted", reason: "stalled" });
  expect(scene.log).toEqual(["renewal stopped"]);
});

test("a stop that was published counts against an answer that was just complete, and one that comes later does not", async () => {
  const scene = await stage();
  let kept: TurnScope["interrupt"] | undefined;
  const { ending } = await scene.conduct(async ({ interrupt }) => {
    kept = interrupt;
    await interrupt.interrupt({ hard: false, reason: "user-stop" });
    return answered;
  });
  expect(ending).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
  expect(await kept?.interrupt({ hard: true, reason: "user-stop" })).toBe("already-finished");
});

test("a body that ignores its hard stop is left behind after ten seconds, and the turn ends without it", async () => {
  const scene = await stage();
  const done = scene.conduct(async ({ interrupt }) => {
    void interrupt.interrupt({ hard: true, reason: "user-stop" });
    return await new Promise<never>(() => {});
  });
  await scene.host.advance(10_000);
  expect((await done).ending).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
});

test("a wake-up makes the holder look for a stop request at once", async () => {
  const scene = await stage();
  const done = scene.conduct(untilStopped);
  await scene.store.turns.requestStop("s", { hard: true, reason: "user-stop", by: "cli" });
  for (const listener of scene.wakeListeners) listener();
  await scene.host.advance(1);
  expect((await done).ending).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
});

test("a defect met at a wake-up is said as a warning, and the turn goes on", async () => {
  const scene = await stage();
  const stopRequest = scene.store.turns.stopRequest.bind(scene.store.turns);
  const warnings: string[] = [];
  const warn = process.emitWarning;
  process.emitWarning = (warning: string | Error): void => void warnings.push(String(warning));
  try {
    const done = scene.conduct(untilStopped);
    scene.store.turns.stopRequest = async () => {
      scene.store.turns.stopRequest = stopRequest;
      throw new TypeError("a defect");
    };
    for (const listener of scene.wakeListeners) listener();
    await scene.host.advance(1);
    await scene.store.turns.requestStop("s", { hard: true, reason: "user-stop", by: "cli" });
    await scene.host.advance(500);
    expect((await done).ending).toMatchObject({ outcome: "interrupted", reason: "user-stop" });
  } finally {
    process.emitWarning = warn;
  }
  expect(warnings).toEqual(["TypeError: a defect"]);
});

test("before a side effect the stop is asked, then the lease, then the stop again", async () => {
  const scene = await stage();
  const told: unknown[] = [];
  let confirmCount = 0;
  await scene.conduct(async ({ beforeSideEffect, interrupt }) => {
    const ask = (): Promise<void> => beforeSideEffect().catch((error: unknown) => void told.push(codeOf(error)));
    scene.onConfirm = async () => {
      confirmCount++;
      throw new CodedError("LEASE_LOST", "The lease is gone.");
    };
    await ask();
    scene.onConfirm = async () => {
      confirmCount++;
      await interrupt.interrupt({ hard: false, reason: "user-stop" });
    };
    await ask();
    await ask();
    return answered;
  });
  expect(told).toEqual(["LEASE_LOST", "INTERRUPTED", "INTERRUPTED"]);
  expect(confirmCount).toBe(2);
});

test("what a turn started is ended with it, its fence admits no commit any more, and nobody listens to its lease", async () => {
  const scene = await stage();
  let fence: TurnScope["fence"] | undefined;
  await scene.conduct(async (scope) => {
    fence = scope.fence;
    scope.markProcesses();
    return answered;
  });
  expect(scene.endedMarkers).toEqual([{ TURNKEEPER_TURN: "t1" }]);
  expect(fence?.begin()).toBeUndefined();
  expect(scene.lossListenerCount()).toBe(0);
});

test("entries that the store refuses end the turn as failed, without them", async () => {
  const scene = await stage();
  const body = { role: "tool", callId: "nobody's", name: "shell", status: "ok", output: "" } as const;
  const { ending } = await scene.conduct(async () => ({ ...answered, entries: [{ key: "k", body }] }));
  expect(ending).toMatchObject({ outcome: "failed", reason: "STORE_CONTRACT" });
  expect(await scene.store.turns.read("s", "t1")).toMatchObject({ state: "ended", outcome: "failed" });
});

test("a store that does not take the end costs the lease, not the process: it is let go", async () => {
  const scene = await stage();
  scene.store.turns.end = async () => {
    throw new CodedError("STORE_FULL", "The disk is full.");
  };
  const { ending } = await scene.conduct(async () => answered);
  expect(ending).toMatchObject({ outcome: "failed", reason: "STORE_FULL" });
  expect(scene.log).toEqual(["lease let go"]);
});

test("so does a fault that is none of the store's, and what was answered is told as failed", async () => {
  const scene = await stage();
  scene.store.turns.end = async () => {
    throw new TypeError("undefined is not a function");
  };
  const { ending } = await scene.conduct(async () => answered);
  expect(ending).toMatchObject({ outcome: "failed", reason: "INTERNAL" });
  expect(scene.log).toEqual(["lease let go"]);
});

test("an end that the store refuses by its token is told as a lost lease, with nothing to hand over", async () => {
  const scene = await stage();
  const conducted = await scene.conduct(async ({ grant }) => {
    // Settled by somebody else between the last renewal and the end.
    await scene.store.turns.settleForeign(grant);
    return { ...answered, text: "done" };
  });
  expect(conducted).toEqual({
    ending: expect.objectContaining({ outcome: "interrupted", reason: "lease-lost", text: "done" }) as unknown,
  });
});

const step = (key: string) => [{ key, body: { role: "assistant", parts: [{ type: "text", text: key }] } }] as const;

test("SPOOL-1: once the store has failed no side effect begins, and what follows goes to the spool though it works again", async () => {
  const scene = await stage();
  const { transcript, spool } = scene.store;
  const append = transcript.append.bind(transcript);
  transcript.append = async () => {
    throw new CodedError("STORE_FULL", "The disk is full.");
  };
  const told: unknown[] = [];
  await scene.conduct(async (scope) => {
    await scope.append(step("first"));
    transcript.append = append;
    await scope.beforeSideEffect().catch((error: unknown) => void told.push(codeOf(error)));
    await scope.append(step("second"));
    expect(await spool.waiting("s")).toMatchObject([{ stepCount: 2 }]);
    return { outcome: "failed", reason: "STORE_FULL" };
  });
  expect(told).toEqual(["STORE_FULL"]);
  expect((await transcript.load("s")).entries.map(({ body }) => body.role)).toEqual(["user"]);
});

test("SPOOL-1: nothing is kept under a lease that another has, whatever fails then", async () => {
  const scene = await stage();
  scene.store.transcript.append = async () => {
    throw new CodedError("STORE_FULL", "The disk is full.");
  };
  await scene.conduct(async (scope) => {
    scene.loseLease();
    await scope.append(step("late"));
    return answered;
  });
  expect(await scene.store.spool.waiting("s")).toEqual([]);
});
