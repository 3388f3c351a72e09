import assert from "node:assert/strict";
import { createCompressionFence } from "@turnkeeper/compression-fence";
import { createTurnInterrupt } from "@turnkeeper/interrupt";
import type { InterruptOutcome, InterruptRequest, TurnInterrupt } from "@turnkeeper/interrupt";
import type { CodedError, Host } from "@turnkeeper/kernel";
import { createProgressClock, watchTurn } from "@turnkeeper/turn-liveness";
import type { AbortClaim, StallObservation } from "@turnkeeper/turn-liveness";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leaseLost, softStop, stalled, userStop } from "./scene.ts";

type TurnStep = "progress" | "commit" | "wait" | "silence";
type Stopper = "nobody" | "soft" | "hard" | "lease";

interface Plan {
  readonly turn: readonly TurnStep[];
  readonly stopper: Stopper;
  readonly lookCount: number;
}

/** How the watchdog's verdict becomes a stop; the variants are the historical races. */
type Commit = (
  turn: TurnInterrupt,
  request: InterruptRequest & { readonly claim: AbortClaim },
  pause: () => Promise<void>,
) => Promise<InterruptOutcome>;

const inOneStep: Commit = (turn, request) => turn.interrupt(request);

const consumedBeforehand: Commit = async (turn, { claim, ...request }, pause) => {
  if (!claim.consume()) return "vetoed";
  await pause();
  return turn.interrupt(request);
};

const pollMs = 1000;
// Shorter than a poll: whatever has not moved since the last look is silent for its bound.
const settings = { timeoutMs: 1, pollMs };

/** No race lasts longer: the watch's patience with an abort that does not answer is not part of it. */
const raceMs = 10_000;

const reasonsToStop: Readonly<Record<Exclude<Stopper, "nobody">, InterruptRequest>> = {
  soft: softStop,
  hard: userStop,
  lease: leaseLost,
};

/** Every timer and every hop is a task of the fast-check scheduler, so each order of them all is a schedule. */
function scheduledHost(scheduler: fc.Scheduler, nowMs: () => number): { readonly host: Host; armedCount(): number } {
  let armedCount = 0;
  const arm = (label: string, fn: () => void, isBeyond = false): (() => void) => {
    armedCount++;
    let isArmed = true;
    const disarm = (): void => {
      if (isArmed) armedCount--;
      isArmed = false;
    };
    if (isBeyond) return disarm;
    void scheduler.schedule(Promise.resolve(), label).then(() => {
      if (!isArmed) return;
      disarm();
      fn();
    });
    return disarm;
  };
  const host: Host = {
    clock: { monotonicMs: nowMs, wallMs: nowMs, bootMs: nowMs, bootId: "race" },
    timers: {
      after: (ms, fn) => arm(`timer of ${ms} ms`, fn, ms > raceMs),
      afterPoll: (fn) => arm("poll phase", fn),
      soon: (fn) => arm("end of this turn of the loop", fn),
    },
    random: { id: () => "id", unit: () => 0 },
  };
  return { host, armedCount: () => armedCount };
}

type Reached = Record<string, number>;

/** Runs one schedule and asserts every promise of claim, fence and interrupt about it. */
async function race(scheduler: fc.Scheduler, plan: Plan, commit: Commit, reached: Reached): Promise<void> {
  const reach = (what: string): void => void (reached[what] = (reached[what] ?? 0) + 1);
  let nowMs = 0;
  const { host, armedCount } = scheduledHost(scheduler, () => nowMs);
  const pause = (label: string): Promise<void> => scheduler.schedule(Promise.resolve(), label);
  const clock = createProgressClock({ host });
  const fence = createCompressionFence({ host });
  // An assertion that fails in a listener is reported like any listener that throws.
  const faults: CodedError[] = [];
  const turn = createTurnInterrupt({ host, commitBarrier: fence, onFault: (fault) => void faults.push(fault) });
  const neighbour = createTurnInterrupt({ host });
  const child = turn.child();
  const said: string[] = [];
  let observed: StallObservation | undefined;

  const checkPublication = (): void => {
    const record = turn.current;
    if (record?.reason !== "stalled") return;
    const { generation } = clock.snapshot();
    assert.equal(generation, observed?.generation, "a stall was published although the turn had moved");
    assert.equal(
      clock.openWaits.some((wait) => wait.endsInMs > 0),
      false,
      "a stall was published inside a declared wait",
    );
  };
  turn.signal.addEventListener("abort", checkPublication);
  turn.hardSignal.addEventListener("abort", checkPublication);

  const runTurn = async (): Promise<void> => {
    for (const step of plan.turn) {
      await pause(`turn: ${step}`);
      if (turn.signal.aborted) return;
      if (step === "progress") clock.progress("model");
      else if (step === "wait") {
        using _wait = clock.declareWait({ kind: "tool", name: "shell", boundMs: 1e9 });
        await pause("turn: waits");
      } else if (step === "commit") {
        const admitted = fence.begin();
        assert.ok(admitted, "the fence was closed although nobody had stopped the turn");
        await pause("turn: commits");
        assert.ok(fence.commitInFlight, "a running commit was torn");
        if (turn.hardSignal.aborted) reach("stopped beside a commit");
        admitted.finish();
        clock.progress("compaction");
      }
    }
  };

  const outcomes: InterruptOutcome[] = [];
  const runWatch = async (): Promise<void> => {
    const looks: (() => Promise<unknown>)[] = [];
    const handle = { name: "watch", active: true, runCount: 0, cancel: () => Promise.resolve() };
    const takeTask = (body: () => unknown): typeof handle => {
      looks.push(async () => body());
      return handle;
    };
    const watch = watchTurn({ clock, host, scheduler: { schedule: takeTask } }, settings, {
      name: "raced",
      commitAbort: async (claim, observation) => {
        observed = observation;
        await pause("watch: reserved");
        if (fence.commitInFlight) reach("waited for a commit");
        const outcome = await commit(turn, { ...stalled, claim }, () => pause("watch: consumed"));
        outcomes.push(outcome);
        return outcome === "published";
      },
      onStall: () => void said.push("stalled"),
      onAborted: () => void said.push("aborted"),
      withdraw: () => void said.push("withdrawn"),
    });
    for (let look = 0; look < plan.lookCount; look++) {
      await pause("watch: poll");
      nowMs += pollMs;
      if ((await looks[0]?.()) === false) break;
    }
    await watch.stop();
  };

  const runStopper = async (): Promise<void> => {
    if (plan.stopper === "nobody") return;
    await pause("stopper");
    const outcome = await turn.interrupt(reasonsToStop[plan.stopper]);
    assert.notEqual(outcome, "vetoed");
    assert.equal(turn.signal.aborted, true, "an unconditional stop did not stop the turn");
    reach(`${plan.stopper}: ${outcome}`);
  };

  const steered = ["a", "b", "c"];
  const accepted: string[] = [];
  const delivered: string[] = [];
  const runSteers = async (): Promise<void> => {
    for (const text of steered) {
      await pause("steer");
      if (turn.steer(text)) accepted.push(text);
      const batch = turn.takeSteers();
      await pause("steer: on its way");
      if (batch?.deliver()) delivered.push(...batch.texts);
    }
  };

  const all = Promise.all([runTurn(), runWatch(), runStopper(), runSteers()]);
  await scheduler.waitFor(all);
  for (const fault of faults) throw fault.cause;

  for (const outcome of outcomes) reach(`watch: ${outcome}`);
  const isPublished = outcomes.includes("published");
  assert.deepEqual(
    said.filter((each) => each !== "stalled"),
    isPublished ? ["aborted", "withdrawn"] : [],
    "what was said does not follow what was published",
  );
  if (outcomes.includes("vetoed")) reach(isPublished ? "published after a veto" : "only vetoed");
  const isHard = turn.current?.hard === true;
  if (turn.current === undefined) {
    assert.ok(
      !turn.signal.aborted && !turn.hardSignal.aborted && !child.signal.aborted,
      "a stop that was not published left a trace",
    );
    assert.equal(fence.refusal, undefined, "a stop that was not published closed the fence");
  }
  assert.equal(turn.hardSignal.aborted, isHard);
  assert.equal(child.hardSignal.aborted, isHard, "a hard stop goes down to the children, nothing else does");
  if (isHard && turn.current?.earlier) reach("hardened");
  if (isHard && fence.refusal === "cancelled") reach("pending commit cancelled");
  const undelivered = turn.finish();
  assert.deepEqual([...delivered, ...undelivered], accepted, "a steer was lost, doubled or moved");
  assert.equal(neighbour.signal.aborted, false);
  assert.equal(armedCount(), 0, "a timer is left");
}

const planOf: fc.Arbitrary<Plan> = fc.record({
  turn: fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constant("progress" as const) },
      { weight: 3, arbitrary: fc.constant("commit" as const) },
      { weight: 1, arbitrary: fc.constant("wait" as const) },
      { weight: 2, arbitrary: fc.constant("silence" as const) },
    ),
    { minLength: 1, maxLength: 6 },
  ),
  stopper: fc.constantFrom("nobody" as const, "nobody" as const, "soft" as const, "hard" as const, "lease" as const),
  lookCount: fc.integer({ min: 2, max: 5 }),
});

function explore(commit: Commit, numRuns: number): { readonly reached: Reached; readonly run: Promise<void> } {
  const reached: Reached = {};
  const run = fc.assert(
    fc.asyncProperty(fc.scheduler(), planOf, (scheduler, plan) => race(scheduler, plan, commit, reached)),
    { numRuns },
  );
  return { reached, run };
}

describe("every order of what happens between reservation and publication", () => {
  it("INT-1: publishes only what nothing has overtaken, and leaves no trace otherwise", async () => {
    const { reached, run } = explore(inOneStep, 2000);
    await run;
    const wanted = [
      "watch: published",
      "watch: vetoed",
      "watch: already-interrupted",
      "published after a veto",
      "only vetoed",
      "waited for a commit",
      "stopped beside a commit",
      "pending commit cancelled",
      "hardened",
      "soft: published",
      "soft: already-interrupted",
      "hard: published",
      "hard: already-interrupted",
      "lease: published",
    ];
    expect(wanted.filter((what) => (reached[what] ?? 0) < 3)).toEqual([]);
  });

  it("INT-1 control: without claim and publication in one step it fails: a schedule is found that stops a moving turn", async () => {
    const violation = await explore(consumedBeforehand, 1500).run.then(
      () => "none",
      (error: Error) => error.cause,
    );
    expect(violation).toMatchObject({
      message: expect.stringMatching(/although the turn had moved|inside a declared wait/),
    });
  });
});
