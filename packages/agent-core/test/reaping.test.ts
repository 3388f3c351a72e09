import type { Grant } from "@turnkeeper/state-store";
import type { Liveness, ProcessPresence } from "@turnkeeper/turn-lease";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { reapTurns, requestStop } from "../src/index.ts";
import { createBench } from "./bench.ts";
import type { Bench } from "./bench.ts";

const ttlMs = 60_000;

let bench: Bench;
let presence: ProcessPresence;
/** What the holder's process is found to be, look by look; after the last one it is `active`. */
let looks: Liveness[] = [];
let askedCount = 0;
beforeEach(async () => {
  bench = createBench();
  const own = await openProcessPresence({ host: bench.host });
  looks = [];
  askedCount = 0;
  presence = {
    identity: own.identity,
    register: (id) => own.register(id),
    reportStatus: (id, read) => own.reportStatus(id, read),
    statusOf: async () => undefined,
    onWake: (sessionId, listener) => own.onWake(sessionId, listener),
    wake: async () => "unknown",
    probe: async () => {
      askedCount++;
      return looks.shift() ?? "active";
    },
    close: () => own.close(),
  };
});
afterEach(async () => {
  await presence.close();
  await bench.close();
  expect(bench.host.pendingTimerCount()).toBe(0);
});

/** A turn that runs in another process. */
async function foreignTurn(sessionId = "s", turnId = "turn"): Promise<Grant> {
  const holder = { ...presence.identity, instanceId: "other", holderId: "holder" };
  const runner = { ...presence.identity, instanceId: "other", runnerId: "runner" };
  await bench.store.inbox.offer({ sessionId, inputId: "i", text: "go", onBusy: "wait", runner });
  const begin = { turnId, runnerId: "runner" };
  const granted = await bench.store.leases.acquire({ sessionId, holder, ttlMs, begin });
  if (granted.kind !== "granted") throw new Error(`The session is ${granted.kind}.`);
  return { sessionId, holderId: "holder", fencingToken: granted.fencingToken };
}

/** The ids of the turns that one round settles, and what it had of them in the books whenever it ended processes. */
async function round(): Promise<{ readonly reaped: readonly string[]; readonly runningAtEnd: readonly number[] }> {
  const runningAtEnd: number[] = [];
  const endProcesses = async (): Promise<void> => {
    runningAtEnd.push((await bench.store.turns.running("s")).length);
  };
  const settled = await reapTurns({ store: bench.store, presence, endProcesses });
  return { reaped: settled.map(({ turn }) => turn.turnId), runningAtEnd };
}

describe("the reaper", () => {
  it.each<[string, Liveness]>([
    ["is active", "active"],
    ["cannot be judged", "unknown"],
  ])("LEASE-5: leaves a turn alone whose holder %s, until its lease runs out", async (_, found) => {
    await foreignTurn();
    looks = [found];
    expect(await round()).toEqual({ reaped: [], runningAtEnd: [] });
    await bench.host.advance(ttlMs - 1);
    looks = [found];
    expect(await round()).toEqual({ reaped: [], runningAtEnd: [] });
    expect(askedCount).toBe(2);
    expect(await bench.store.turns.running("s")).toHaveLength(1);
  });

  it("rule 7.13: settles a turn whose lease ran out, whatever its holder says, and ends its processes only then", async () => {
    await foreignTurn();
    await bench.host.advance(ttlMs);
    expect(await round()).toEqual({ reaped: ["turn"], runningAtEnd: [0] });
    expect(askedCount).toBe(0);
    expect(await bench.store.turns.read("s", "turn")).toMatchObject({ outcome: "interrupted", reason: "crashed" });
  });

  it("rule 7.14: ends the processes of a dead turn while that turn still has its session", async () => {
    await foreignTurn();
    looks = ["dead"];
    expect(await round()).toEqual({ reaped: ["turn"], runningAtEnd: [1] });
  });

  it("LEASE-5: takes a lease for leaked only when its living process disowns it twice", async () => {
    await foreignTurn();
    looks = ["unknown-here", "active"];
    expect((await round()).reaped).toEqual([]);
    looks = ["unknown-here", "unknown"];
    expect((await round()).reaped).toEqual([]);
    looks = ["unknown-here", "unknown-here"];
    expect((await round()).reaped).toEqual(["turn"]);
  });

  it("rule 7.13: judges no turn by a lease that is not its own", async () => {
    const { fencingToken } = await foreignTurn();
    const { turns } = bench.store;
    const running = turns.running.bind(turns);
    // What a store would answer in which a later grant stands over a turn that nobody has settled.
    turns.running = async (sessionId) =>
      (await running(sessionId)).map((view) => ({ ...view, turn: { ...view.turn, fencingToken: fencingToken - 1 } }));
    looks = ["dead"];
    expect((await round()).reaped).toEqual([]);
    expect(askedCount).toBe(0);
  });
});

it("a turn whose processes cannot be ended is settled, and keeps no other turn from it; the failure is told", async () => {
  await foreignTurn("s", "first");
  await foreignTurn("other", "second");
  looks = ["dead", "dead"];
  const endProcesses = async (marker: Readonly<Record<string, string>>): Promise<void> => {
    if (marker["TURNKEEPER_TURN"] === "first") throw new Error("no permission");
  };
  await expect(reapTurns({ store: bench.store, presence, endProcesses })).rejects.toThrow("no permission");
  expect(await bench.store.turns.running()).toEqual([]);
});

describe("a stop request", () => {
  it("rule 7.18: wakes the holder of the turn that runs, and stands though the wake-up fails", async () => {
    const woken: string[] = [];
    presence = {
      ...presence,
      wake: async (target, sessionId) => {
        woken.push(`${target.instanceId} about ${sessionId}`);
        throw new Error("no socket");
      },
    };
    const stop = { hard: true, reason: "user-stop", by: "cli" } as const;
    expect(await requestStop({ store: bench.store, presence }, "s", stop)).toEqual({ kind: "nothing-running" });
    expect(woken).toEqual([]);
    await foreignTurn();
    expect(await requestStop({ store: bench.store, presence }, "s", stop)).toMatchObject({ kind: "requested" });
    expect(woken).toEqual(["other about s"]);
    expect(await bench.store.turns.stopRequest("s", "turn")).toMatchObject(stop);
  });
});
