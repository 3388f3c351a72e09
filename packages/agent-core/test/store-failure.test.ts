import { CodedError } from "@turnkeeper/kernel";
import { verifyRecords } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import { openProcessPresence } from "@turnkeeper/turn-lease";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineTool, withTurn } from "../src/index.ts";
import type { AnyTool, Turn, TurnFinished } from "../src/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import { createBench } from "./bench.ts";
import type { Bench } from "./bench.ts";
import { failingStore } from "./failing-store.ts";
import type { FailingStore } from "./failing-store.ts";

let bench: Bench;
let ran: string[] = [];
beforeEach(() => {
  bench = createBench();
  ran = [];
});
afterEach(async () => {
  await bench.close();
  expect(bench.host.pendingTimerCount()).toBe(0);
});

/** A tool whose effect is that the store fails from now on. */
function breaking(store: FailingStore, code: string): AnyTool {
  return defineTool({
    name: "break",
    description: "Breaks the store.",
    input: z.object({}),
    execute: async () => {
      ran.push("break");
      store.code = code;
      return "broken";
    },
  });
}

const second: AnyTool = defineTool({
  name: "second",
  description: "Must not run.",
  input: z.object({}),
  execute: async () => {
    ran.push("second");
    return "ran";
  },
});

const breakingCalls: ScriptedStep = {
  calls: [
    { name: "break", input: {} },
    { name: "second", input: {} },
  ],
};

interface Broken {
  readonly store: FailingStore;
  readonly turn: Turn;
  readonly finished: TurnFinished;
  readonly requestCount: number;
}

/** A turn that calls two tools, of which the first breaks the store. */
async function brokenTurn(code: string, spool: Partial<StateStore["spool"]> = {}): Promise<Broken> {
  const store = failingStore(bench.store, spool);
  const tools = [breaking(store, code), second];
  const { agent, model } = await bench.agent(
    [breakingCalls, { text: "never said" }],
    { toolConcurrency: 1 },
    tools,
    undefined,
    store,
  );
  const turn = agent.run("s", "go", { inputId: "first" });
  const finished = await bench.finished(turn);
  return { store, turn, finished, requestCount: model.requests.length };
}

async function rolesOf(all: boolean): Promise<readonly string[]> {
  const { entries } = await bench.store.transcript.load("s", { all });
  return entries.map(({ body, late }) => {
    const what = body.role === "tool" ? `${body.name} ${body.status}` : body.role;
    return late ? `${what} (late)` : what;
  });
}

async function isClean(): Promise<void> {
  const records = await bench.store.sessions.records("s");
  expect(records && verifyRecords(records)).toEqual([]);
}

describe("rule 7.5: a store that fails under a turn ends it, and what it had produced is kept for the next grant", () => {
  it("ends the turn though a tool beside it never settles, when the lease is believed in no longer, and the agent closes", async () => {
    const store = failingStore(bench.store);
    const deaf = defineTool({
      name: "deaf",
      description: "Never settles.",
      input: z.object({}),
      execute: () => new Promise<never>(() => {}),
    });
    const calls: ScriptedStep = {
      calls: [
        { name: "break", input: {} },
        { name: "deaf", input: {} },
      ],
    };
    const { agent } = await bench.agent([calls], {}, [breaking(store, "STORE_REPLACED"), deaf], undefined, store);
    const turn = agent.run("s", "go");
    expect(await bench.finished(turn)).toMatchObject({ outcome: "failed", reason: "STORE_REPLACED" });
    // What a call beside it still brings can be kept, so it is waited for: as long as the session is surely ours.
    expect(bench.host.clock.monotonicMs()).toBeLessThan(300_000);
    let isClosed = false;
    void agent.close().then(() => (isClosed = true));
    await bench.host.advance(5000);
    expect(isClosed).toBe(true);
  });

  it("SPOOL-1: ends the turn before its next side effect, with what it had produced kept and brought back in order", async () => {
    const { store, finished, requestCount } = await brokenTurn("STORE_REPLACED");
    expect(finished).toMatchObject({
      outcome: "failed",
      reason: "STORE_REPLACED",
      detail: expect.stringMatching(
        /it is broken\. What this turn had produced is kept in memory, and comes back by its/,
      ),
    });
    expect(ran).toEqual(["break"]);
    expect(requestCount).toBe(1);
    expect(await rolesOf(true)).toEqual(["user", "assistant"]);

    store.code = undefined;
    const { agent, model } = await bench.agent([{ text: "going on" }]);
    expect(await bench.finished(agent.run("s", "and now?"))).toMatchObject({ outcome: "answered" });
    const roles = ["user", "assistant", "break ok", "second interrupted", "user", "assistant"];
    expect(await rolesOf(true)).toEqual(roles);
    expect(JSON.stringify(model.requests[0]?.prompt)).toContain("broken");
    const [turn] = (await bench.store.sessions.records("s"))?.turns ?? [];
    expect(turn).toMatchObject({ state: "ended", outcome: "failed", reason: "STORE_REPLACED" });
    expect(await bench.store.inbox.read("s", "first")).toMatchObject({ state: "settled", end: "failed" });
    expect(await bench.store.spool.waiting()).toEqual([]);
    await isClean();
  });

  it("SPOOL-1 control: without the spool what the turn had produced is unknown to the next one", async () => {
    const { store } = await brokenTurn("STORE_REPLACED", { keep: async () => ({ place: "nowhere" }) });
    store.code = undefined;
    const { agent } = await bench.agent([{ text: "going on" }]);
    expect(await bench.finished(agent.run("s", "and now?"))).toMatchObject({ outcome: "answered" });
    expect(await rolesOf(true)).not.toContain("break ok");
    expect(await bench.store.inbox.read("s", "first")).toMatchObject({ state: "settled", end: "interrupted" });
  });

  it("when only the end is left keeps the answer, and whoever asks by the same input id gets it", async () => {
    const store = failingStore(bench.store);
    const last = (): ScriptedStep => {
      store.code = "STORE_CORRUPT";
      return { text: "the answer" };
    };
    const { agent } = await bench.agent([last], {}, [], undefined, store);
    const told = await bench.finished(agent.run("s", "go", { inputId: "first" }));
    expect(told).toMatchObject({ outcome: "failed", reason: "STORE_CORRUPT", text: "the answer" });
    store.code = undefined;
    const next = await bench.agent([]);
    expect(await bench.finished(next.agent.run("s", "go", { inputId: "first" }))).toMatchObject({
      outcome: "answered",
      text: "the answer",
    });
    await isClean();
  });

  it("and works again when the lease is released takes all of it back at once", async () => {
    const store = failingStore(bench.store);
    const last = (): ScriptedStep => {
      store.code = "STORE_FULL";
      return { text: "the answer" };
    };
    const spool = store.spool;
    const healing = {
      ...store,
      spool: {
        ...spool,
        keep: async (step: Parameters<typeof spool.keep>[0]) => {
          const kept = await spool.keep(step);
          store.code = undefined;
          return kept;
        },
      },
    };
    const { agent } = await bench.agent([last], {}, [], undefined, healing);
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "answered", text: "the answer" });
    expect(await bench.store.spool.waiting()).toEqual([]);
    expect(await bench.store.turns.running()).toEqual([]);
    await isClean();
  });

  it("and works again when the lease is released, but for its spool, does not tell an end that nobody has", async () => {
    const store = failingStore(bench.store, {
      keep: async () => {
        store.code = undefined;
        throw new CodedError("STORE_FULL", "Could not keep a step: the disk is full.");
      },
    });
    const last = (): ScriptedStep => {
      store.code = "STORE_FULL";
      return { text: "the answer" };
    };
    const { agent } = await bench.agent([last], {}, [], undefined, store);
    const finished = await bench.finished(agent.run("s", "go", { inputId: "first" }));
    expect(finished).toMatchObject({ outcome: "failed", reason: "STORE_FULL", text: "the answer" });
    expect(finished.detail).toMatch(/Lost are .*how the turn ended/);
    expect(await bench.store.inbox.read("s", "first")).toMatchObject({ state: "settled", end: "interrupted" });
  });

  it("together with its spool says exactly what is lost, and claims nothing else", async () => {
    const { finished } = await brokenTurn("STORE_FULL", {
      keep: async () => {
        throw new CodedError("STORE_FULL", "Could not keep a step: the disk is full.");
      },
    });
    expect(finished).toMatchObject({ outcome: "failed", reason: "STORE_FULL" });
    expect(finished.detail).toMatch(
      /Lost are the result of break, the result of second, how the turn ended: they could not be kept either\. Could not keep a step: the disk is full\.$/,
    );
    expect(finished.detail).not.toMatch(/is kept in/);
  });

  it("keeps nothing once another has the lease: a refusal by token is no failure of the store", async () => {
    const store = failingStore(bench.store);
    const robbed = defineTool({
      name: "robbed",
      description: "Loses the lease.",
      input: z.object({}),
      execute: async () => {
        const lease = await bench.store.leases.read("s");
        if (!lease) throw new Error("The turn holds no lease.");
        const { sessionId, fencingToken, holder } = lease;
        await bench.store.turns.settleForeign({ sessionId, fencingToken, holderId: holder.holderId });
        return "done";
      },
    });
    const { agent } = await bench.agent(
      [{ calls: [{ name: "robbed", input: {} }] }, { text: "never said" }],
      {},
      [robbed],
      undefined,
      store,
    );
    expect(await bench.finished(agent.run("s", "go"))).toMatchObject({ outcome: "interrupted", reason: "lease-lost" });
    expect(store.kept).toEqual([]);
  });

  it("until the lease runs out keeps what had come of the answer", async () => {
    const store = failingStore(bench.store);
    const silent = (): ScriptedStep => {
      store.code = "STORE_IO";
      return { silentAfter: "Half an ans" };
    };
    const lease = { ttlMs: 10_000, renewEveryMs: 1000 };
    const { agent } = await bench.agent([silent], { lease }, [], undefined, store);
    const told = await bench.finished(agent.run("s", "go"));
    expect(told).toMatchObject({ outcome: "failed", reason: "STORE_IO" });
    expect(told.detail).toContain("is kept in memory");
    store.code = undefined;
    const next = await bench.agent([{ text: "going on" }]);
    expect(await bench.finished(next.agent.run("s", "and now?"))).toMatchObject({ outcome: "answered" });
    expect(await rolesOf(false)).toEqual(["user", "assistant", "user", "assistant"]);
    await isClean();
  });

  it("ends somebody else's loop with its failure, and keeps the step that met it", async () => {
    const store = failingStore(bench.store);
    const { host, scheduler } = bench;
    const presence = await openProcessPresence({ host });
    const body = { role: "notice", text: "said" } as const;
    const failed = withTurn({ store, host, scheduler, presence }, "s", "go", async (turn) => {
      store.code = "STORE_READONLY";
      await turn.append([{ key: "mine", body }]);
    }).catch((error: unknown) => error);
    await bench.host.advance(60_000);
    expect(await failed).toMatchObject({ code: "STORE_READONLY" });
    await presence.close();
    store.code = undefined;
    const { agent } = await bench.agent([{ text: "going on" }]);
    expect(await bench.finished(agent.run("s", "and now?"))).toMatchObject({ outcome: "answered" });
    expect(await rolesOf(false)).toEqual(["user", "notice", "user", "assistant"]);
  });
});

describe("a store that fails once the message is stored, before its turn begins", () => {
  it.each([
    { withdraws: true, told: expect.not.stringContaining("do not send it again"), left: "cancelled" },
    { withdraws: false, told: expect.stringMatching(/disk is full\. .* do not send it again\.$/), left: undefined },
  ])("takes the message back, or says that it still runs ($withdraws)", async ({ withdraws, told, left }) => {
    const { inbox, leases } = bench.store;
    const full = (): never => {
      throw new CodedError("STORE_FULL", "Could not acquire session s: the disk is full.");
    };
    leases.acquire = async () => full();
    if (!withdraws) inbox.withdraw = async () => full();
    const { agent } = await bench.agent([{ text: "never said" }]);
    const finished = await bench.finished(agent.run("s", "hello", { inputId: "one" }));
    expect(finished).toMatchObject({ outcome: "failed", reason: "STORE_FULL", detail: told });
    const records = await bench.store.sessions.records("s");
    expect(records?.inputs).toMatchObject([
      left === undefined ? { state: "pending" } : { state: "settled", end: left },
    ]);
  });
});
