import { virtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createMemoryStore, unansweredCalls, verifyRecords, wantsTurn } from "@turnkeeper/state-store";
import type { CallDecision, StateStore } from "@turnkeeper/state-store";
import { virtualProcesses } from "@turnkeeper/turn-lease/testing";
import fc from "fast-check";
import { expect, it } from "vitest";
import { z } from "zod";
import { answerApproval, createAgent, defineTool } from "../src/index.ts";
import type { Agent, AnyTool } from "../src/index.ts";
import { scriptedModel } from "../src/testing/index.ts";
import type { ScriptedStep } from "../src/testing/index.ts";
import { delegate } from "./delegating-tool.ts";

const anyStep: fc.Arbitrary<ScriptedStep> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .array(fc.constantFrom("danger", "look", "change", "rewrite", "delegate", "delegate"), {
        minLength: 1,
        maxLength: 4,
      })
      .map((names) => ({
        calls: names.map((name) => ({ name, input: name === "delegate" ? { task: "do it" } : {} })),
      })),
  },
  { weight: 1, arbitrary: fc.constant<ScriptedStep>({ text: "An answer." }) },
);

type Move =
  | { readonly kind: "answer"; readonly which: number; readonly decision: CallDecision }
  | { readonly kind: "stop"; readonly hard: boolean }
  /** A process dies between two of its steps. */
  | { readonly kind: "crash" }
  /** Another one comes: with the same message, with one of its own, or to serve whoever waits. */
  | { readonly kind: "come"; readonly as: "repeat" | "message" | "server" }
  | { readonly kind: "wait"; readonly ms: number };

const anyMove: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("answer" as const),
      which: fc.nat({ max: 3 }),
      decision: fc.constantFrom<CallDecision[]>("allow", "allow", "deny"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("stop" as const), hard: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constant({ kind: "crash" as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("come" as const),
      as: fc.constantFrom("repeat" as const, "message" as const, "server" as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 7, 60, 700, 6000) }) },
);

interface Life {
  readonly agent: Agent;
  /** It ends as by SIGKILL: nothing that it asks of its store, and no tool that it starts, comes to anything any more. */
  kill(): void;
}

/** A subagent asks about one call, and is done; whoever else asks the model gets the steps one by one. */
function modelOf(steps: readonly ScriptedStep[]): ReturnType<typeof scriptedModel> {
  let index = 0;
  const step: ScriptedStep = ({ prompt }) => {
    if (!JSON.stringify(prompt[0]).includes("You are a subagent")) {
      const own = steps[index++] ?? { text: "So be it." };
      return typeof own === "function" ? { text: "So be it." } : own;
    }
    return prompt.at(-1)?.role === "tool" ? { text: "Found it." } : { calls: [{ name: "danger", input: {} }] };
  };
  return scriptedModel(Array.from({ length: 300 }, () => step));
}

/** One session with its subagents, and processes that come and go on it. */
class Play {
  readonly host = virtualHost();
  readonly store = createMemoryStore({ host: this.host });
  readonly ran: string[] = [];
  readonly #processes = virtualProcesses({ host: this.host });
  readonly #lives: Life[] = [];
  #count = 0;
  readonly inputIds = new Set<string>();

  async start(steps: readonly ScriptedStep[]): Promise<Life> {
    let isDead = false;
    const never = new Promise<never>(() => {});
    const port = <Port extends object>(one: Port): Port =>
      new Proxy(one, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name, target);
          if (typeof member !== "function") return member;
          return async (...args: unknown[]): Promise<unknown> => {
            if (isDead) return never;
            const answer = (await Reflect.apply(member, target, args)) as unknown;
            return isDead ? never : answer;
          };
        },
      });
    const { sessions, leases, transcript, inbox, turns, spool } = this.store;
    const store: StateStore = {
      sessions: port(sessions),
      leases: port(leases),
      transcript: port(transcript),
      inbox: port(inbox),
      turns: port(turns),
      spool: port(spool),
      check: async () => {},
      close: async () => {},
    };
    const tool = (name: string, needsApproval: boolean, concurrency: "shared" | "exclusive"): AnyTool =>
      defineTool({
        name,
        description: "Notes that it ran.",
        input: z.object({}),
        needsApproval,
        concurrency,
        execute: async (_input, { callId, turnId }) => {
          if (isDead) return never;
          this.ran.push(`${turnId}/${callId}`);
          await new Promise<void>((resolve) => void this.host.timers.after(25, resolve));
          return "done";
        },
      });
    const tools = [
      tool("danger", true, "shared"),
      tool("look", false, "shared"),
      tool("change", true, "exclusive"),
      tool("rewrite", false, "exclusive"),
      delegate,
    ];
    const presence = this.#processes.start({ instanceId: `p${this.#count++}` });
    const model = modelOf(steps);
    const scheduler = createPeriodicScheduler({ host: this.host });
    const deps = { store, model, tools, host: this.host, scheduler, presence };
    const agent = await createAgent(deps, { maxIterations: 8, lease: { ttlMs: 5000, renewEveryMs: 1000 } });
    const life: Life = {
      agent,
      kill: () => {
        isDead = true;
        presence.kill();
      },
    };
    this.#lives.push(life);
    return life;
  }

  send({ agent }: Life, inputId: string): Promise<unknown> {
    this.inputIds.add(inputId);
    return agent.run("s", `message ${inputId}`, { inputId, approval: "ask" }).result;
  }

  async openTurn() {
    return (await this.store.turns.running("s"))[0]?.turn;
  }

  /** Whoever sees the question, in a process that has nothing else to do with it; of the session or a subagent's. */
  async answer(which: number, decision: CallDecision): Promise<string | undefined> {
    const open = (await this.store.turns.running()).flatMap(({ turn }) =>
      turn.state === "suspended"
        ? unansweredCalls(turn).flatMap(({ callId, child }) => (child ? [] : [{ ...turn, callId }]))
        : [],
    );
    const asked = open[which % Math.max(1, open.length)];
    if (!asked) return undefined;
    const presence = this.#processes.start({ instanceId: `p${this.#count++}` });
    const { sessionId, turnId, callId } = asked;
    const request = { sessionId, turnId, callId, decision, by: "somebody" };
    const outcome = await answerApproval({ store: this.store, presence }, request);
    expect(outcome.kind).toBe("recorded");
    return sessionId === "s" ? decision : `${decision} a subagent's`;
  }

  /** Whether nobody's turn is open, and nothing waits for one. */
  async isOver(): Promise<boolean> {
    const waiting = (await this.store.inbox.pending("s")).filter(wantsTurn);
    return waiting.length === 0 && (await this.store.turns.running()).length === 0;
  }

  /** Answers whether there was one. */
  crash(): boolean {
    const life = this.#lives.shift();
    life?.kill();
    return life !== undefined;
  }

  get last(): Life | undefined {
    return this.#lives.at(-1);
  }
}

it("rule 7.19: whoever dies, answers or stops in between: pairs whole, inputs ended once, nothing run twice or unasked", async () => {
  const reached = new Map<string, number>();
  const reach = (what: string): void => void reached.set(what, (reached.get(what) ?? 0) + 1);
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyStep, { minLength: 1, maxLength: 4 }),
      fc.array(anyMove, { minLength: 6, maxLength: 14 }),
      async (script, moves) => {
        const play = new Play();
        void play.send(await play.start(script), "i0");
        await play.host.advance(20);
        for (const [index, move] of moves.entries()) {
          const open = await play.openTurn();
          const isOverChild = open?.state === "suspended" && unansweredCalls(open).some(({ child }) => child);
          const reachNow = (what: string): void => {
            reach(`${what} while ${open?.state ?? "free"}`);
            if (isOverChild) reach(`${what} while suspended over a child`);
          };
          switch (move.kind) {
            case "answer": {
              const decision = await play.answer(move.which, move.decision);
              if (decision !== undefined) reach(decision);
              break;
            }
            case "stop":
              if (play.last) void play.last.agent.stop("s", { hard: move.hard });
              reachNow("stop");
              break;
            case "crash":
              if (play.crash()) reachNow("crash");
              break;
            case "come": {
              const life = await play.start(script);
              reachNow(move.as);
              reachNow("come");
              if (move.as === "server") void life.agent.runWaiting();
              else void play.send(life, move.as === "repeat" ? "i0" : `i${index + 1}`);
              break;
            }
            case "wait":
              await play.host.advance(move.ms);
          }
          await play.host.advance(3);
        }
        // The last one finds whatever was left, and every question is answered from here on.
        while (play.crash());
        const last = await play.start([]);
        let isOver = false;
        void play.send(last, "end").then(() => (isOver = true));
        for (let step = 0; !isOver; step++) {
          if (step > 400) throw new Error("It does not end.");
          await play.answer(0, "allow");
          await play.host.advance(step < 20 ? 5 : 250);
        }
        for (let step = 0; !(await play.isOver()); step++) {
          if (step > 400) throw new Error("Something is left.");
          await play.answer(0, "allow");
          // A subagent that was left by a parent that ended is gone on with by whoever serves the store.
          void last.agent.runWaiting();
          await play.host.advance(250);
        }

        const records = await play.store.sessions.records("s");
        expect(records && verifyRecords(records)).toEqual([]);
        for (const inputId of play.inputIds) {
          const input = await play.store.inbox.read("s", inputId);
          // One that died before its message was stored was never promised anything.
          if (input) expect(input).toMatchObject({ state: "settled" });
        }
        expect(new Set(play.ran).size).toBe(play.ran.length);
        const ran = new Set(play.ran);
        for (const { turnId, approvals = [], ...turn } of records?.turns ?? []) {
          if (approvals.length > 0) reach(`asked, ${turn.state === "ended" ? turn.outcome : turn.state}`);
          for (const { callId, answer, child } of approvals)
            if (!child && answer?.decision !== "allow") expect([...ran]).not.toContain(`${turnId}/${callId}`);
        }
        const statuses = new Map(
          (records?.entries ?? []).flatMap(({ turnId, body }) =>
            body.role === "tool" ? [[`${turnId}/${body.callId}`, body.status] as const] : [],
          ),
        );
        // Who was allowed, and whose turn came to its answer, has run; who was denied is told so.
        for (const turn of records?.turns ?? []) {
          if (turn.state !== "ended" || turn.outcome !== "answered") continue;
          for (const { callId, answer, child } of turn.approvals ?? [])
            expect([callId, statuses.get(`${turn.turnId}/${callId}`)]).toEqual([
              callId,
              child || answer?.decision === "allow" ? "ok" : "denied",
            ]);
        }
        for (const { turnId, body } of records?.entries ?? []) {
          if (body.role !== "tool" || !ran.has(`${turnId}/${body.callId}`)) continue;
          expect(["ok", "interrupted", "unknown"]).toContain(body.status);
          expect(JSON.stringify(body.output)).not.toContain("Not run");
        }
        // Each subagent has one end, which was told once: by a result, or by a notice that the next turn has.
        const entries = records?.entries ?? [];
        for (const { sessionId, parent } of (await play.store.sessions.list({ limit: 200 })).sessions) {
          if (!parent) continue;
          const child = await play.store.sessions.records(sessionId);
          expect(child && verifyRecords(child)).toEqual([]);
          const notices = (records?.inputs ?? []).filter((input) => input.child?.sessionId === sessionId);
          expect([sessionId, notices.length]).toEqual([sessionId, 1]);
          const byResult = entries.filter(
            ({ body }) => body.role === "tool" && JSON.stringify(body.output).includes(`"sessionId":"${sessionId}"`),
          ).length;
          const byMessage = entries.filter(({ body }) => body.role === "user" && body.child === sessionId).length;
          const isPending = notices[0]?.state === "pending" ? 1 : 0;
          expect([sessionId, byResult + byMessage + isPending]).toEqual([sessionId, 1]);
          reach(byResult > 0 ? "told by a result" : "told by a message");
        }
        play.host.reboot();
      },
    ),
    { numRuns: 100 },
  );
  const wanted = [
    ["allow", "deny", "asked, answered", "asked, interrupted"],
    ["crash while suspended", "stop while suspended", "crash while running", "stop while running"],
    ["repeat while suspended", "message while suspended", "server while suspended"],
    ["allow a subagent's", "deny a subagent's", "told by a result", "told by a message"],
    ["crash", "stop", "come"].map((what) => `${what} while suspended over a child`),
  ].flat();
  expect(wanted.filter((what) => !reached.has(what))).toEqual([]);
}, 240_000);
