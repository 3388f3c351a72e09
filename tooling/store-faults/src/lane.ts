import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "@turnkeeper/kernel";
import type { AcquireRequest, Grant, Holder, Runner } from "@turnkeeper/state-store";
import type { SqliteStore } from "@turnkeeper/state-store-sqlite";
import type { Told } from "./acknowledgement.ts";
import type { Crew } from "./crew.ts";
import { failureOf } from "./failure.ts";
import { LaneTurn } from "./lane-turn.ts";
import { sessionIdsOf } from "./workload.ts";
import type { Workload } from "./workload.ts";

export interface LaneDeps {
  readonly store: SqliteStore;
  readonly random: Pick<Random, "unit">;
  readonly crew: Crew;
  readonly tell: (told: Told) => void;
  readonly workload: Workload;
  readonly name: string;
}

/** Nobody lives that long here: grants are taken over when their holder is dead, never because they ran out. */
const ttlMs = 600_000;
const attemptsMax = 8;
const pauseMsMax = 6;
/** How many turns take an input when they begin; the others begin with nothing and are steered. */
const inputShare = 0.5;

interface Granted {
  readonly grant: Grant;
  readonly holder: Holder;
  /** What the begun turn took. */
  readonly inputId?: string;
}

/** Runs one turn after the other on sessions that it shares with every other lane and process. */
export class Lane {
  readonly #deps: LaneDeps;
  readonly #runner: Runner;
  readonly #sessionIds: readonly string[];

  constructor(deps: LaneDeps) {
    this.#deps = deps;
    this.#runner = deps.crew.runner(deps.name);
    this.#sessionIds = sessionIdsOf(deps.workload.sessionCount);
  }

  /** Ends after its turns, or as soon as the store is sealed. */
  async run(): Promise<void> {
    const { turnCount } = this.#deps.workload;
    await this.#runTurns(turnCount === 0 ? Infinity : turnCount, (sessionId, turnId) =>
      this.#deps.random.unit() < inputShare
        ? this.#turnOfInput(sessionId, turnId)
        : this.#turnOfGrant(sessionId, turnId),
    );
  }

  /** The turns that are to be spooled whatever chance had the lanes do; nobody else may be at work in this process. */
  runSpooled(): Promise<void> {
    return this.#runTurns(this.#deps.workload.spooledTurnCount ?? 0, (sessionId, turnId) =>
      this.#turnOfGrant(sessionId, turnId, true),
    );
  }

  async #runTurns(count: number, run: (sessionId: string, turnId: string) => Promise<void>): Promise<void> {
    const { tell, random, name } = this.#deps;
    for (let number = 0; number < count; number++) {
      const sessionId = this.#sessionIds[Math.floor(random.unit() * this.#sessionIds.length)] ?? "";
      const turnId = `${name}.${number}`;
      try {
        await run(sessionId, turnId);
      } catch (error) {
        const failure = failureOf(error);
        tell({ told: "failed", attempt: `turn ${turnId}`, failure });
        if (failure.isSealed) return;
      }
    }
  }

  /** The input is accepted first, and taken with the grant in one transaction. */
  async #turnOfInput(sessionId: string, turnId: string): Promise<void> {
    const { store, tell } = this.#deps;
    const inputId = `input-${turnId}`;
    const runner = this.#runner;
    const offered = await store.inbox.offer({ sessionId, inputId, text: inputId, onBusy: "wait", runner });
    if (offered.kind !== "accepted")
      return tell({ told: "refused", sessionId, attempt: "offer", answer: offered.kind });
    tell({ told: "accepted", sessionId, inputId });
    const granted = await this.#granted(sessionId, { turnId, runnerId: runner.runnerId });
    if (granted) await this.#run(granted, turnId);
    // Taken it is when the oldest input was this one; another runs it, or nobody.
    if (granted?.inputId === inputId) return;
    const withdrawal = await store.inbox.withdraw(sessionId, inputId, "cancelled");
    if (withdrawal.kind === "withdrawn") tell({ told: "withdrawn", sessionId, inputId });
  }

  /** The grant is lease traffic; what makes it count is the turn that begins under it. */
  async #turnOfGrant(sessionId: string, turnId: string, isSpooled = false): Promise<void> {
    const granted = await this.#granted(sessionId);
    if (granted) await this.#run(granted, turnId, isSpooled);
  }

  async #run({ grant, holder, inputId }: Granted, turnId: string, isSpooled = false): Promise<void> {
    try {
      await new LaneTurn(this.#deps, { grant, turnId, runner: this.#runner, inputId, isSpooled }).run();
    } finally {
      this.#deps.crew.dismiss(holder);
    }
  }

  async #granted(sessionId: string, begin?: AcquireRequest["begin"]): Promise<Granted | undefined> {
    const { store, tell, crew, random } = this.#deps;
    const holder = crew.holder();
    const request = { sessionId, holder, ttlMs, ...(begin ? { begin } : {}) };
    let reclaim: AcquireRequest["reclaim"];
    try {
      for (let attempt = 0; attempt < attemptsMax; attempt++) {
        const answer = await store.leases.acquire(reclaim ? { ...request, reclaim } : request);
        reclaim = undefined;
        if (answer.kind === "granted") {
          const { fencingToken, input } = answer;
          const grant = { sessionId, holderId: holder.holderId, fencingToken };
          tell({ told: "granted", sessionId, fencingToken });
          if (!input || !begin) return { grant, holder };
          const { inputId } = input;
          tell({ told: "taken", sessionId, fencingToken, turnId: begin.turnId, inputIds: [inputId] });
          return { grant, holder, inputId };
        }
        if (answer.kind === "held" && crew.isDead(answer.lease.holder)) {
          const { fencingToken, holder: dead } = answer.lease;
          reclaim = { sessionId, holderId: dead.holderId, fencingToken };
          continue;
        }
        const waiter = answer.kind === "behind" ? answer.head.runner : undefined;
        if (waiter && crew.isGone(waiter)) await store.inbox.abandon(sessionId, waiter.runnerId);
        else await pause(random.unit() * pauseMsMax);
      }
    } catch (error) {
      crew.dismiss(holder);
      throw error;
    }
    crew.dismiss(holder);
    return undefined;
  }
}
