import type { AskedCall, Holder, LeaseView, PendingInput, RunningTurn, SuspendedTurn } from "@turnkeeper/state-store";
import { describe, expect, it } from "vitest";
import type { Pulse, SessionState, WaitingInput } from "@turnkeeper/agent-core";
import { whatIsNext } from "../src/json/what-is-next.ts";

const identity = { instanceId: "i", host: "box", bootId: "b" };
const holder: Holder = { ...identity, pid: 1, holderId: "h" };

const times = { acquiredAtMs: 0, expiresAtMs: 30_000 };

function lease(standing: LeaseView["standing"] = "live"): LeaseView {
  const expiresInMs = standing === "live" ? 30_000 : -5000;
  return { sessionId: "s", holder, fencingToken: 1, ttlMs: 300_000, expiresInMs, standing, renewCount: 0, ...times };
}

function turn(stop?: RunningTurn["stop"]): RunningTurn {
  const facts = { sessionId: "s", turnId: "t", fencingToken: 1, holder, startedAtMs: 0, inputIds: ["i"] };
  return { ...facts, state: "running", ...(stop ? { stop } : {}) };
}

const stop = { hard: false, reason: "user-stop", by: "somebody", atMs: 0 } as const;

/** An input for the process `pid`, or for whoever comes next. */
function waits(inputId: string, pid?: number, pulse?: Pulse): WaitingInput {
  const runner = pid === undefined ? {} : { runner: { ...identity, pid, runnerId: `r${pid}` } };
  const facts = { sessionId: "s", inputId, seq: 1, text: "", digest: "", offeredAtMs: 0 };
  const input: PendingInput = { ...facts, delivery: "turn", state: "pending", ...runner };
  return { input, ...(pulse ? { pulse } : {}) };
}

function next(state: Partial<SessionState>): string {
  return whatIsNext({ sessionId: "s", atMs: 0, waiting: [], ...state }, "start one with: run it");
}

describe("what is told to happen next on a session", () => {
  it("that is free: the first waiter that answers, before one that does not", () => {
    expect(next({})).toMatch(/^Nothing runs and nothing waits; start one with/);
    expect(next({ waiting: [waits("a", 7, "alive")] })).toBe("pid 7 on box runs input a now.");
    expect(next({ waiting: [waits("a", 7, "unknown"), waits("b", 8, "alive")] })).toBe(
      "pid 8 on box runs input b now.",
    );
    expect(next({ waiting: [waits("a"), waits("b", 7, "dead")] })).toMatch(
      /^Nothing runs\. What waits is run by the next/,
    );
    expect(next({ waiting: [waits("a", 7, "unknown")] })).toMatch(
      /^Nothing runs\. Input a waits for pid 7 on box, which does not answer: .*; it goes on once it answers\. Others need not/,
    );
  });

  it("that is held: the turn's end, and who comes then", () => {
    const held = { lease: lease(), holderPulse: "alive", turn: turn() } as const;
    expect(next(held)).toBe("The turn goes on to its end.");
    expect(next({ ...held, turn: turn(stop) })).toBe("The turn is being stopped.");
    expect(next({ ...held, waiting: [waits("a", 7, "unknown"), waits("b", 8, "alive")] })).toBe(
      "The turn goes on to its end. Then pid 8 on box runs input b.",
    );
    expect(next({ ...held, waiting: [waits("a")] })).toBe(
      "The turn goes on to its end. Then its process runs what waits.",
    );
    expect(next({ ...held, waiting: [waits("a", 7, "unknown")] })).toBe(
      "The turn goes on to its end. Then pid 7 on box runs input a, if it answers again: it does not now.",
    );
  });

  it("whose process does not answer: that, and what a stop that was asked for comes to", () => {
    const silent = { lease: lease(), holderPulse: "unknown" } as const;
    expect(next({ ...silent, turn: turn() })).toMatch(
      /^Its process does not answer: .*\. If it renews, the turn goes on; if not, the lease runs out in 30/,
    );
    expect(next({ ...silent, turn: turn(stop) })).toMatch(
      /^Its process does not answer: .*\. If it goes on, the turn ends as it was asked to; if not, the lease runs out in 30/,
    );
  });

  it("whose turn waits for answers: whose, and until when", () => {
    const call = (callId: string, resultUntilMs?: number): AskedCall => ({
      callId,
      name: "shell",
      askedAtMs: 0,
      ...(resultUntilMs === undefined ? {} : { resultUntilMs }),
    });
    const asks = (...approvals: AskedCall[]): string => {
      const { stop: _stop, ...facts } = turn();
      const suspended: SuspendedTurn = { ...facts, state: "suspended", suspendedAtMs: 0, approvals };
      return next({ turn: suspended });
    };
    expect(asks(call("a"))).toBe("The turn waits until somebody allows or denies it, however long that takes.");
    expect(asks(call("a"), call("b"))).toMatch(/ all 2 calls are allowed or denied, however/);
    const until = "1970-01-01T00:01:00.000Z";
    expect(asks(call("a", 60_000))).toBe(
      `The turn waits until its client sends the result of its call; without the client's part it is stopped at ${until}.`,
    );
    expect(asks(call("a", 90_000), call("b", 60_000), call("c"))).toBe(
      `The turn waits until its client sends the results of its 2 calls, and somebody allows or denies it; without the client's part it is stopped at ${until}.`,
    );
  });

  it("that nobody holds any more: whoever comes, and whether anybody does", () => {
    const dead = { lease: lease(), holderPulse: "dead", turn: turn() } as const;
    expect(next(dead)).toMatch(/^Its process has died: .*\. Nobody waits; start one with/);
    expect(next({ ...dead, waiting: [waits("a", 7, "alive")] })).toMatch(/ That is pid 7 on box\.$/);
    expect(next({ ...dead, waiting: [waits("a", 7, "unknown")] })).toMatch(
      / No process that answers waits for it; start/,
    );
    expect(next({ ...dead, holderPulse: "alive", lease: lease("expired") })).toMatch(/^The lease ran out: /);
    expect(next({ ...dead, holderPulse: "leaked" })).toMatch(/^Its process has forgotten it: /);
  });
});
