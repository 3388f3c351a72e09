import fc from "fast-check";
import { callsOf, verifyRecords } from "@turnkeeper/state-store";
import type { StateStore } from "@turnkeeper/state-store";
import { expect, it } from "vitest";
import { z } from "zod";
import type { Cancel, Host } from "@turnkeeper/kernel";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { virtualProcesses } from "@turnkeeper/turn-lease/testing";
import type { VirtualProcess } from "@turnkeeper/turn-lease/testing";
import { createAgent, defineTool } from "../src/index.ts";
import type { Agent, AnyTool } from "../src/index.ts";
import { strictestProvider } from "../src/testing/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import { createBench } from "./bench.ts";
import { counted, countedCalls, overflow, talkativeModel, words } from "./long-talk.ts";
import type { TalkativeModel } from "./long-talk.ts";

/** What the model does when it is asked, for a turn or for a summary. */
type Reply = "answer" | "long" | "call" | "two-calls" | "overflow" | "silent" | "cut";
type Act =
  | { readonly kind: "say"; readonly onBusy: "wait" | "steer" | "queue" | "interrupt"; readonly tokens: number }
  | { readonly kind: "stop"; readonly hard: boolean }
  | { readonly kind: "compact" }
  | { readonly kind: "wait"; readonly ms: number }
  /** The process that runs the session dies before its next call to the store. */
  | { readonly kind: "crash"; readonly afterCalls: number };

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("say" as const),
      onBusy: fc.constantFrom(
        "wait" as const,
        "steer" as const,
        "steer" as const,
        "queue" as const,
        "interrupt" as const,
      ),
      tokens: fc.constantFrom(10, 400, 900),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("stop" as const), hard: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constant({ kind: "compact" as const }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 5, 30, 30, 70_000) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("crash" as const), afterCalls: fc.integer({ min: 0, max: 20 }) }),
  },
);
const reply = fc.constantFrom<Reply>("answer", "long", "long", "call", "two-calls", "call", "overflow", "silent");
const summary = fc.constantFrom<Reply>("answer", "answer", "answer", "cut", "silent", "silent", "overflow");

/** A tool that takes a while, so that there is time to die in. */
const readOn = ({ timers }: Host): AnyTool =>
  defineTool({
    name: "read",
    description: "Reads.",
    input: z.object({ n: z.string() }),
    execute: ({ n }) =>
      new Promise<string>((resolve) => void timers.after(10, () => resolve(`page ${n} ${words(200)}`))),
  });

/** What one process has of the machine. Once it has died nothing of it reaches the store, and no timer of it fires. */
class MortalProcess {
  readonly host: Host;
  readonly store: StateStore;
  readonly presence: VirtualProcess;
  readonly #timers = new Set<Cancel>();
  #callsLeft = Number.POSITIVE_INFINITY;
  #isDead = false;

  constructor(host: Host, store: StateStore, presence: VirtualProcess) {
    this.presence = presence;
    const { timers } = host;
    const living = (arm: (fire: () => void) => Cancel): Cancel => {
      if (this.isDead) return () => {};
      const cancel = arm(() => void this.#timers.delete(cancel));
      this.#timers.add(cancel);
      return () => {
        this.#timers.delete(cancel);
        cancel();
      };
    };
    this.host = {
      ...host,
      timers: {
        ...timers,
        after: (ms, fire) => living((fired) => timers.after(ms, () => (fired(), fire()))),
        afterPoll: (fire) => living((fired) => timers.afterPoll(() => (fired(), fire()))),
      },
    };
    const port = <Port extends object>(inner: Port): Port =>
      new Proxy(inner, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name, target);
          if (typeof member !== "function") return member;
          return (...args: unknown[]): unknown => {
            if (!this.#isDead && this.#callsLeft-- > 0) return Reflect.apply(member, target, args);
            this.#die();
            return new Promise(() => {});
          };
        },
      });
    this.store = {
      sessions: port(store.sessions),
      leases: port(store.leases),
      transcript: port(store.transcript),
      inbox: port(store.inbox),
      turns: port(store.turns),
      spool: port(store.spool),
      check: () => store.check(),
      close: async () => {},
    };
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** It dies at the call to the store that follows so many more; now, where that is none. */
  crashAfter(calls: number): void {
    this.#callsLeft = Math.min(this.#callsLeft, calls);
    if (this.#callsLeft <= 0) this.#die();
  }

  #die(): void {
    this.#isDead = true;
    this.presence.kill();
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }
}

it("whatever is said, stopped, compacted and killed meanwhile: pairs are whole, nothing is lost or doubled, order is kept", async () => {
  const reached: Record<string, number> = {};
  const reach = (what: string): void => void (reached[what] = (reached[what] ?? 0) + 1);
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { minLength: 6, maxLength: 18, size: "max" }),
      fc.array(reply, { minLength: 40, maxLength: 40 }),
      fc.array(summary, { minLength: 20, maxLength: 20 }),
      async (acts, replies, summaries) => {
        const bench = createBench();
        const processes = virtualProcesses({ host: bench.host });
        const complaints: string[] = [];
        let callNumber = 0;
        let asked = 0;
        const answer = (one: Reply): ScriptedStep | ReturnType<typeof counted> => {
          const call = (): { id: string; name: string; input: object } => {
            callNumber++;
            return { id: `c${callNumber}`, name: "read", input: { n: `${callNumber}` } };
          };
          switch (one) {
            case "answer":
              return counted(`answer ${++asked}`);
            case "long":
              return counted(`answer ${++asked} ${words(500)}`);
            case "call":
              return countedCalls(call());
            case "two-calls":
              return countedCalls(call(), call());
            case "overflow":
              return overflow();
            case "silent":
              return { silentAfter: "" };
            case "cut":
              return counted("cut", "length");
          }
        };
        const modelOf = (): TalkativeModel =>
          talkativeModel(
            replies.map((one) => (request) => {
              complaints.push(...strictestProvider(request.prompt));
              const step = answer(one);
              return typeof step === "function" ? step(request) : step;
            }),
            summaries.map((one) => (request) => {
              const step = answer(one);
              return typeof step === "function" ? step(request) : step;
            }),
            2000,
          );
        const options = {
          compaction: { contextTimeoutMs: 20_000 },
          lease: { ttlMs: 30_000, renewEveryMs: 5_000 },
          liveness: { timeoutMs: 60_000, pollMs: 10_000 },
          modelAttempts: 1,
        };
        const start = async (): Promise<{ readonly agent: Agent; readonly process: MortalProcess }> => {
          const process = new MortalProcess(bench.host, bench.store, processes.start());
          const { host, presence } = process;
          const deps = { host, scheduler: createPeriodicScheduler({ host }), tools: [readOn(host)] };
          return {
            agent: await createAgent({ ...deps, presence, store: process.store, model: modelOf() }, options),
            process,
          };
        };
        let { agent, process } = await start();
        const opening: readonly Act[] = [
          { kind: "say", onBusy: "wait", tokens: 900 },
          { kind: "wait", ms: 30 },
        ];
        for (const [index, one] of [...opening, ...acts].entries()) {
          if (process.isDead) {
            reach("crashed");
            const { health } = await bench.store.transcript.compactionHealth("s");
            if (health?.error?.includes("ended before it came")) reach("crashed over a summary");
            ({ agent, process } = await start());
          }
          switch (one.kind) {
            case "say": {
              const inputId = `input-${index}`;
              const call = agent.run("s", `message ${index} ${words(one.tokens)}`, { inputId, onBusy: one.onBusy });
              void call.result.then(({ outcome }) => reach(`said: ${outcome}`));
              break;
            }
            case "stop":
              void agent.stop("s", { hard: one.hard }).catch(() => {});
              break;
            case "compact":
              void agent.compact("s").result.then(({ outcome }) => reach(`compacted by hand: ${outcome}`));
              break;
            case "wait":
              await bench.host.advance(one.ms);
              break;
            case "crash":
              process.crashAfter(one.afterCalls);
              break;
          }
        }
        // A last process takes the session, whatever the ones before left of it.
        const lastModel = talkativeModel(
          Array.from({ length: 60 }, () => counted("the end")),
          counted("SUMMARY"),
          2000,
        );
        const { host, scheduler } = bench;
        const lastDeps = { host, scheduler, store: bench.store, presence: processes.start(), tools: [readOn(host)] };
        const last = await createAgent({ ...lastDeps, model: lastModel }, options);
        process.crashAfter(0);
        await bench.host.advance(120_000);
        const finished = await bench.finished(last.run("s", "last message", { inputId: "last" }));
        expect(finished.outcome).toBe("answered");
        for (let step = 0; step < 50; step++) await bench.host.advance(1000);

        expect(complaints).toEqual([]);
        const records = await bench.store.sessions.records("s");
        expect(records && verifyRecords(records)).toEqual([]);
        const { entries } = await bench.store.transcript.load("s", { all: true });
        // Every message that was stored stands in it once, in the order in which turns took them.
        const inTranscript = entries.flatMap(({ body }) =>
          body.role === "user" && body.inputId ? [body.inputId] : [],
        );
        expect(new Set(inTranscript).size).toBe(inTranscript.length);
        for (const input of records?.inputs ?? [])
          expect(inTranscript.includes(input.inputId)).toBe(
            input.state !== "pending" && "turnId" in input && input.turnId !== undefined,
          );
        expect(new Set(entries.map(({ key }) => key)).size).toBe(entries.length);
        // The context: summaries before what is behind them, pairs whole, order kept.
        const { entries: context, compactionCount } = await bench.store.transcript.load("s");
        const bySeq = context.filter(({ body }) => body.role !== "summary").map(({ seq }) => seq);
        expect(bySeq).toEqual(bySeq.toSorted((left, right) => left - right));
        expect(context.filter(({ body }) => body.role === "summary").length).toBeLessThanOrEqual(1);
        const opened = context.flatMap(({ body, turnId }) => callsOf(body).map(({ callId }) => `${turnId}/${callId}`));
        const closed = context.flatMap(({ body, turnId }) =>
          body.role === "tool" ? [`${turnId}/${body.callId}`] : [],
        );
        expect(closed.toSorted()).toEqual(opened.toSorted());
        const summarised = entries.filter(({ body }) => body.role === "summary");
        expect(summarised).toHaveLength(compactionCount);
        // What is archived and what is context are all there is.
        expect(entries.filter(({ archived, late }) => !archived && !late)).toHaveLength(context.length);
        if (compactionCount > 0) reach("compacted");
        if (compactionCount > 2) reach("compacted often");
        if (opened.length > 0) reach("calls in the context");
        if (entries.some(({ body }) => body.role === "tool" && body.status === "unknown")) reach("unknown outcome");
        await last.close();
        await bench.close();
        expect(host.pendingTimerCount()).toBe(0);
      },
    ),
    { numRuns: 250 },
  );
  const wanted = ["compacted", "compacted often", "crashed", "crashed over a summary", "unknown outcome"];
  const others = ["said: answered", "said: interrupted", "compacted by hand: answered", "calls in the context"];
  const rare = [...wanted, ...others].filter((what) => (reached[what] ?? 0) < 5);
  expect({ rare, reached }).toMatchObject({ rare: [] });
}, 240_000);
