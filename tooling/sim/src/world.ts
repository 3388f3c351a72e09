import type { LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { createAgent, defineTool } from "@turnkeeper/agent-core";
import type { Agent, Turn } from "@turnkeeper/agent-core";
import { virtualHost } from "@turnkeeper/kernel/testing";
import type { VirtualHost } from "@turnkeeper/kernel/testing";
import { createPeriodicScheduler } from "@turnkeeper/periodic-scheduler";
import { createMemoryStore } from "@turnkeeper/state-store";
import type { MemoryStore, OnBusy } from "@turnkeeper/state-store";
import { Checks } from "./checks.ts";
import { faultyStore, noFaults } from "./faulty-store.ts";
import type { FaultRates } from "./faulty-store.ts";
import { ProcessLife } from "./process-life.ts";
import { Sockets } from "./presence.ts";

/** Small bounds, so that minutes of waiting are seconds here and every timeout is met. */
const bounds = {
  lease: { ttlMs: 4000, renewEveryMs: 800 },
  liveness: { timeoutMs: 3000, pollMs: 300 },
  waitMs: 20_000,
};

interface SimProcess {
  readonly life: ProcessLife;
  readonly agent: Agent;
}

/** What came out of a run: violations, and how often each thing happened, so that a green run is known to have been somewhere. */
export interface RunReport {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly reached: Readonly<Record<string, number>>;
}

const sessionIds = ["a", "b"] as const;
const policies: readonly OnBusy[] = ["wait", "wait", "queue", "steer", "interrupt", "reject"];

/** One simulated machine: processes that share a store, run turns, and are hit by faults; everything from one seed. */
export class World {
  readonly #host: VirtualHost;
  readonly #store: MemoryStore;
  readonly #checks: Checks;
  readonly #sockets = new Sockets();
  readonly #processes: SimProcess[] = [];
  readonly #reached: Record<string, number> = {};
  #rates: FaultRates = noFaults;
  #pids = 100;
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.#host = virtualHost({ seed });
    this.#store = createMemoryStore({ host: this.#host });
    this.#checks = new Checks(this.#store);
  }

  #unit(): number {
    return this.#host.random.unit();
  }

  #pick<Value>(values: readonly Value[]): Value {
    const value = values[Math.floor(this.#unit() * values.length)];
    if (value === undefined) throw new Error("There is nothing to pick from.");
    return value;
  }

  #count(what: string): void {
    this.#reached[what] = (this.#reached[what] ?? 0) + 1;
  }

  async #boot(): Promise<void> {
    const life = new ProcessLife(this.#host, ++this.#pids);
    const presence = this.#sockets.open(`instance-${life.pid}`, life);
    const store = faultyStore(
      this.#store,
      life,
      () => this.#rates,
      () => this.#unit(),
      (fault) => this.#count(`fault ${fault}`),
    );
    const scheduler = createPeriodicScheduler({ host: life.host });
    const effect = defineTool<object>({
      name: "effect",
      description: "Has an effect outside the store.",
      input: { "~standard": { version: 1, vendor: "sim", validate: (value) => ({ value: value as object }) } },
      jsonSchema: { type: "object" },
      execute: async (_input, { sessionId, turnId, signal }) => {
        const turn = await this.#store.turns.read(sessionId, turnId);
        this.#count("effect");
        await this.#checks.effectBegins({ sessionId, fencingToken: turn?.fencingToken ?? 0, pid: life.pid });
        await this.#pause(life, this.#unit() < 0.05 ? 10_000 : this.#unit() * 500, signal);
        return "done";
      },
    });
    const model = {
      id: "sim/model",
      languageModel: this.#model(life),
      close: async () => {},
      [Symbol.asyncDispose]: async () => {},
    };
    const agent = await createAgent({ store, model, tools: [effect], host: life.host, scheduler, presence }, bounds);
    this.#processes.push({ life, agent });
    this.#count("boot");
  }

  /** Waits in the process's own time; ends early, as a well-behaved tool does, when the turn is stopped. */
  async #pause(life: ProcessLife, ms: number, signal?: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel();
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const cancel = life.host.timers.after(ms, end);
      signal?.addEventListener("abort", end, { once: true });
    });
  }

  /** A model that thinks for a while, then talks, calls the tool, falls silent for good, or breaks. */
  #model(life: ProcessLife): Parameters<typeof createAgent>[0]["model"]["languageModel"] {
    const finish: LanguageModelV3StreamPart = {
      type: "finish",
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 1, text: 1, reasoning: undefined },
      },
      finishReason: { unified: "stop", raw: "stop" },
    };
    return {
      specificationVersion: "v3",
      provider: "sim",
      modelId: "model",
      supportedUrls: {},
      doGenerate: () => Promise.reject(new Error("The simulated model streams only.")),
      doStream: async ({ abortSignal }) => {
        await this.#pause(life, this.#unit() * 300, abortSignal);
        const kind = this.#unit();
        if (kind < 0.04) throw new Error("The simulated model broke.");
        const parts: LanguageModelV3StreamPart[] = [
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: "Well." },
          { type: "text-end", id: "t" },
        ];
        const isSilent = kind < 0.1;
        if (isSilent) this.#count("silence");
        else if (kind < 0.55)
          parts.push({
            type: "tool-call",
            toolCallId: `c${Math.floor(this.#unit() * 3)}`,
            toolName: "effect",
            input: "{}",
          });
        return {
          stream: new ReadableStream<LanguageModelV3StreamPart>({
            start: (controller) => {
              for (const part of parts) controller.enqueue(part);
              if (isSilent) return;
              controller.enqueue(finish);
              controller.close();
            },
          }),
        };
      },
    };
  }

  #offer(): void {
    const alive = this.#processes.filter(({ life }) => life.state === "running");
    if (alive.length === 0) return;
    const { agent, life } = this.#pick(alive);
    const sessionId = this.#pick(sessionIds);
    const turn = agent.run(sessionId, `message ${Math.floor(this.#unit() * 1000)}`, { onBusy: this.#pick(policies) });
    this.#count("offer");
    void this.#listen(turn, life);
    if (this.#unit() < 0.1) turn.stop({ hard: this.#unit() < 0.5 });
  }

  async #listen(turn: Turn, life: ProcessLife): Promise<void> {
    let finishedCount = 0;
    for await (const event of turn) {
      // A dead process tells nobody anything.
      if (life.state === "dead") return;
      if (event.type === "input.accepted") this.#checks.accepted(turn.sessionId, event.inputId);
      if (event.type === "turn.finished") {
        finishedCount++;
        this.#count(`outcome ${event.outcome}${event.outcome === "interrupted" ? ` ${event.reason ?? ""}` : ""}`);
      }
    }
    if (finishedCount !== 1) this.#checks.violations.push(`TURN-1: a call got ${finishedCount} turn.finished events`);
  }

  async #act(): Promise<void> {
    const what = this.#unit();
    const someone = this.#pick(this.#processes);
    if (what < 0.35) this.#offer();
    else if (what < 0.39) {
      someone.life.kill();
      this.#count("kill");
    } else if (what < 0.45) {
      someone.life.stop();
      this.#count("stop");
    } else if (what < 0.6) someone.life.continue();
    else if (what < 0.64) this.#host.jumpWall((this.#unit() - 0.5) * 7_200_000);
    else if (what < 0.66) {
      this.#host.suspend(this.#unit() * 8000);
      this.#count("suspend");
    } else if (what < 0.7) await someone.agent.stop(this.#pick(sessionIds)).catch(() => {});
    if (this.#processes.filter(({ life }) => life.state !== "dead").length < 3) await this.#boot();
  }

  /** Runs `steps` steps of chance under faults, then lets the machine come to rest, checking after every step. */
  async run(steps: number): Promise<RunReport> {
    await this.#boot();
    await this.#boot();
    await this.#boot();
    this.#rates = { die: 0.002, stop: 0.004, busy: 0.02, unknown: 0.01, slow: 0.1 };
    for (let step = 0; step < steps && this.#checks.violations.length === 0; step++) {
      void this.#act();
      await this.#host.advance(this.#unit() * 250);
      await this.#checks.afterStep(sessionIds);
    }
    if (this.#checks.violations.length === 0) await this.#rest();
    for (const { life } of this.#processes) life.kill();
    return { seed: this.#seed, violations: this.#checks.violations, reached: this.#reached };
  }

  async #rest(): Promise<void> {
    this.#rates = noFaults;
    for (const { life } of this.#processes) life.continue();
    await this.#boot();
    await this.#host.advance(30_000);
    // Whoever comes next runs what dead processes left behind.
    const last = this.#processes.at(-1);
    for (const sessionId of sessionIds)
      if (last) void this.#listen(last.agent.run(sessionId, "the last one"), last.life);
    await this.#host.advance(120_000);
    await this.#checks.afterStep(sessionIds);
    await this.#checks.atRest(sessionIds);
  }
}
