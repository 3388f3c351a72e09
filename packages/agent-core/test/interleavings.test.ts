import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createMemoryStore, verifyRecords } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import { virtualProcesses } from "@turnkeeper/turn-lease/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../src/index.ts";
import type { Agent, AnyTool, Turn, TurnEvent } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedModel, ScriptedStep } from "../src/testing/index.ts";
import { createBench } from "./bench.ts";

/** Tools that take their time, and a word on each start. */
function tools(host: VirtualHost, onStart: (callId: string) => void): AnyTool[] {
  const taking = (name: string, concurrency: "shared" | "exclusive"): AnyTool =>
    defineTool({
      name,
      description: "Takes its time.",
      input: z.object({ ms: z.number() }),
      concurrency,
      execute: ({ ms }, { callId, turnId }) => {
        onStart(`${turnId}/${callId}`);
        return new Promise((resolve) => void host.timers.after(ms, () => resolve(`after ${ms}`)));
      },
    });
  return [taking("take", "shared"), taking("alone", "exclusive")];
}

const anyCall = fc.record({
  name: fc.constantFrom("take", "alone", "nobody's"),
  input: fc.oneof(fc.record({ ms: fc.constantFrom(0, 5, 40, 300) }), fc.constantFrom("[1]", "{", "null")),
});
const words = { type: "text-start", id: "t" } as const;
const anyStep: fc.Arbitrary<ScriptedStep> = fc.oneof(
  { weight: 3, arbitrary: fc.array(anyCall, { minLength: 1, maxLength: 4 }).map((calls) => ({ calls })) },
  { weight: 2, arbitrary: fc.constant<ScriptedStep>({ text: "An answer." }) },
  { weight: 1, arbitrary: fc.constant<ScriptedStep>({ silentAfter: "Half an" }) },
  { weight: 1, arbitrary: fc.constant<ScriptedStep>({ silentAfter: "" }) },
  { weight: 1, arbitrary: fc.constant<ScriptedStep>({ parts: [] }) },
  {
    weight: 1,
    arbitrary: fc.constant<ScriptedStep>({
      parts: [words, { type: "text-delta", id: "t", delta: "broken " }],
      error: new Error("The stream broke."),
    }),
  },
);

type Move = {
  readonly kind: "steer" | "redirect" | "queue" | "interrupt" | "stop" | "hard stop";
  readonly afterMs: number;
};
const anyMove: fc.Arbitrary<Move> = fc.record({
  kind: fc.constantFrom<Move["kind"][]>("steer", "steer", "redirect", "queue", "interrupt", "stop", "hard stop"),
  afterMs: fc.constantFrom(0, 1, 3, 20, 100, 600),
});

async function ended(host: VirtualHost, work: Promise<unknown>): Promise<void> {
  let isOver = false;
  void work.then(() => (isOver = true));
  for (let step = 0; !isOver; step++) {
    if (step > 500) throw new Error("It does not end.");
    await host.advance(step < 10 ? 1 : 250);
  }
}

describe("whatever comes in between", () => {
  it("calls have their results, inputs one end, requests a form that all providers take, and steers are told right", async () => {
    const reached = new Map<string, number>();
    const reach = (what: string): void => void reached.set(what, (reached.get(what) ?? 0) + 1);
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyStep, { minLength: 1, maxLength: 5 }),
        fc.array(anyMove, { maxLength: 5 }),
        async (script, moves) => {
          const bench = createBench();
          const { host, store } = bench;
          const startedIds: string[] = [];
          const model: ScriptedModel = scriptedModel(
            Array.from({ length: 300 }, (_, index) => script[index] ?? { text: `So be it, ${index}.` }),
          );
          const options = { maxIterations: 12, liveness: { timeoutMs: 5000 }, modelAttempts: 2 };
          const agent = await bench.agentOn(
            model,
            options,
            tools(host, (id) => startedIds.push(id)),
          );
          const turns: Turn[] = [agent.run("s", "message 0", { inputId: "i0" })];
          for (const [index, { kind, afterMs }] of moves.entries()) {
            await host.advance(afterMs);
            const inputId = `i${index + 1}`;
            if (kind === "stop" || kind === "hard stop") void agent.stop("s", { hard: kind === "hard stop" });
            else {
              const onBusy = kind === "redirect" ? "steer" : kind;
              turns.push(agent.run("s", `message ${index + 1}`, { inputId, onBusy, redirect: kind === "redirect" }));
            }
          }
          await ended(host, Promise.all(turns.map(({ result }) => result)));
          await ended(host, agent.idle());

          const records = await store.sessions.records("s");
          expect(records && verifyRecords(records)).toEqual([]);
          for (const { inputId } of turns)
            expect(await store.inbox.read("s", inputId)).toMatchObject({ state: "settled" });
          for (const turn of records?.turns ?? []) expect(JSON.stringify(turn)).not.toMatch(/strict provider refuses/);
          // A call runs once at most, and none that is said not to have run.
          expect(new Set(startedIds).size).toBe(startedIds.length);
          for (const { turnId, body } of records?.entries ?? []) {
            if (body.role !== "tool") continue;
            reach(body.status);
            if (JSON.stringify(body.output).includes("Not run"))
              expect(startedIds).not.toContain(`${turnId}/${body.callId}`);
          }
          const asked = JSON.stringify(model.requests.map(({ prompt }) => prompt));
          const events: TurnEvent[] = [];
          for (const turn of turns) for await (const event of turn) events.push(event);
          for (const { inputId } of turns) {
            const input = await store.inbox.read("s", inputId);
            const end = input?.state === "settled" ? input.end : "";
            reach(end);
            const wasSeen = asked.includes(`message ${inputId.slice(1)}"`);
            // Answered is only what a model has seen; what was said to be delivered it has seen, and it is said once.
            if (end === "answered") expect(wasSeen).toBe(true);
            const said = events.filter((event) => event.type === "steer.delivered" && event.inputId === inputId);
            expect(said.length).toBeLessThanOrEqual(1);
            if (said.length > 0) {
              reach("delivered");
              expect(wasSeen).toBe(true);
            }
          }
          if (asked.includes("Go on.") || asked.includes("was cut off")) reach("gone on");
          await bench.close();
          expect(host.pendingTimerCount()).toBe(0);
        },
      ),
      { numRuns: 40 },
    );
    for (const what of ["ok", "error", "interrupted", "answered", "failed", "delivered"])
      expect([what, (reached.get(what) ?? 0) > 0]).toEqual([what, true]);
  }, 240_000);
});

/** A store whose process dies with one of its calls: just before it has its effect, or just after, and before it is told. */
function mortal(
  store: StateStore,
  death: { readonly call: number; readonly when: "before" | "after" },
): StateStore & { readonly callCount: number } {
  let callCount = 0;
  const never = new Promise<never>(() => {});
  const port = <Port extends object>(one: Port): Port =>
    new Proxy(one, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        return async (...args: unknown[]): Promise<unknown> => {
          const number = ++callCount;
          if (number > death.call || (number === death.call && death.when === "before")) return never;
          const answer = (await Reflect.apply(member, target, args)) as unknown;
          return number >= death.call ? never : answer;
        };
      },
    });
  return {
    sessions: port(store.sessions),
    leases: port(store.leases),
    transcript: port(store.transcript),
    inbox: port(store.inbox),
    turns: port(store.turns),
    spool: port(store.spool),
    check: () => store.check(),
    close: () => store.close(),
    get callCount() {
      return callCount;
    },
  };
}

interface Life {
  readonly host: VirtualHost;
  readonly store: StateStore;
  readonly runs: readonly string[];
  readonly callCount: number;
  live(store: StateStore, steps: readonly ScriptedStep[]): Promise<Agent>;
}

/** A turn with two steps of calls and a steer, whose process dies with the given call of its store. */
async function lifeUntil(death: Parameters<typeof mortal>[1]): Promise<Life> {
  const host = virtualHost();
  const store = createMemoryStore({ host });
  const processes = virtualProcesses({ host });
  const runs: string[] = [];
  const live = async (on: StateStore, steps: readonly ScriptedStep[]): Promise<Agent> => {
    const scheduler = createPeriodicScheduler({ host });
    const presence = processes.start({ instanceId: on === store ? "next" : "dying" });
    const own = { host, scheduler, presence, tools: tools(host, (id) => runs.push(id)) };
    return createAgent(
      { store: on, model: scriptedModel(steps), ...own },
      { lease: { ttlMs: 5000, renewEveryMs: 1000 } },
    );
  };
  const dying = mortal(store, death);
  const call = (name: string, ms: number): { name: string; input: { ms: number } } => ({ name, input: { ms } });
  const agent = await live(dying, [
    { calls: [call("take", 20), call("take", 5), call("alone", 5)] },
    { text: "A half.", calls: [call("alone", 5), call("take", 10)] },
    { text: "The answer." },
    { text: "And more." },
  ]);
  agent.run("s", "go", { inputId: "first" });
  await host.advance(15);
  agent.run("s", "be brief", { inputId: "steer", onBusy: "steer" });
  for (let step = 0; step < 30; step++) await host.advance(20);
  // The machine goes down with it: no timer of this life fires any more.
  host.reboot();
  return { host, store, runs, callCount: dying.callCount, live };
}

describe("a process that dies at any of its store's calls", () => {
  it("leaves a session that the next one can go on with: pairs whole, inputs settled once, nothing run twice", async () => {
    const { callCount } = await lifeUntil({ call: Number.POSITIVE_INFINITY, when: "before" });
    const ends = new Set<string>();
    // The reaper's and the stop's polls are among them; what dies there dies between two steps.
    for (let call = 1; call <= Math.min(callCount, 40); call++) {
      for (const when of ["before", "after"] as const) {
        const { host, store, runs, live } = await lifeUntil({ call, when });
        const agent = await live(
          store,
          Array.from({ length: 5 }, (_, index) => ({ text: `Going on, ${index}.` })),
        );
        const turn = agent.run("s", "and now?", { inputId: "next" });
        await ended(host, turn.result);
        expect([call, when, (await turn.result).outcome]).toEqual([call, when, "answered"]);
        await ended(host, agent.idle());
        const records = await store.sessions.records("s");
        expect(records && verifyRecords(records)).toEqual([]);
        for (const inputId of ["first", "steer"]) {
          const input = await store.inbox.read("s", inputId);
          // What was never accepted is nowhere; what was has its one end.
          ends.add(input === undefined ? "never accepted" : input.state === "settled" ? input.end : input.state);
        }
        expect(new Set(runs).size).toBe(runs.length);
        await ended(host, agent.close());
      }
    }
    expect([...ends].toSorted()).toEqual(["answered", "interrupted", "never accepted"]);
  }, 240_000);
});
