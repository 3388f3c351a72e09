import type { EntryDraft, Grant, Runner } from "@turnkeeper/state-store";
import { stepKeys } from "./acknowledgement.ts";
import type { LaneDeps } from "./lane.ts";

export interface TurnStart {
  readonly grant: Grant;
  readonly turnId: string;
  readonly runner: Runner;
  /** What it took with its grant; absent when it has still to begin. */
  readonly inputId: string | undefined;
  /** Every step of it goes to the spool, and its own release brings them back: not left to chance. */
  readonly isSpooled: boolean;
}

const stepsMax = 4;
const textLengthMax = 3_000;
const renewedShare = 0.3;
const ttlMs = 600_000;
/** How many turns are refused by the store at some step, and go on with the spool alone. */
const spooledShare = 0.2;
/** How many turns leave their end to the store, as a crash does. */
const unendedShare = 0.1;

/** One turn under a grant: steps of a call and its result, lease traffic between them, and an end. */
export class LaneTurn {
  readonly #deps: LaneDeps;
  readonly #start: TurnStart;
  readonly #openInputIds: string[];

  constructor(deps: LaneDeps, start: TurnStart) {
    this.#deps = deps;
    this.#start = start;
    this.#openInputIds = start.inputId === undefined ? [] : [start.inputId];
  }

  async run(): Promise<void> {
    const { store, random } = this.#deps;
    const { grant, inputId, isSpooled } = this.#start;
    const isSteered = inputId === undefined;
    if (isSteered && !(await this.#beginSteered())) return;
    const stepCount = 1 + Math.floor(random.unit() * stepsMax);
    if (isSpooled) return this.#spool(0, stepCount);
    const spooledFrom = random.unit() < spooledShare ? Math.floor(random.unit() * stepCount) : stepCount;
    for (let step = 0; step < spooledFrom; step++) {
      // What joined the turn under way is settled with a step; what began it, with its end.
      if (!(await this.#append(step, isSteered && step === 0 ? this.#openInputIds.splice(0) : []))) return;
      if (random.unit() < renewedShare && !this.#isAnswered("renew", await store.leases.renew(grant, ttlMs))) return;
    }
    if (spooledFrom < stepCount) return this.#spool(spooledFrom, stepCount);
    if (random.unit() < unendedShare) {
      this.#isAnswered("release", await store.leases.release(grant));
      return;
    }
    await this.#end();
  }

  async #beginSteered(): Promise<boolean> {
    const { store, tell } = this.#deps;
    const { grant, turnId, runner } = this.#start;
    const { sessionId, fencingToken } = grant;
    if (!this.#isAnswered("begin", await store.turns.begin(grant, turnId, []))) return false;
    const inputId = `steer-${turnId}`;
    const offered = await store.inbox.offer({ sessionId, inputId, text: inputId, onBusy: "steer", runner });
    if (offered.kind === "accepted") tell({ told: "accepted", sessionId, inputId });
    const steers = await store.inbox.takeSteers(grant, turnId);
    if (steers.kind !== "taken") return this.#isAnswered("take steers", steers);
    this.#openInputIds.push(...steers.inputs.map((input) => input.inputId));
    tell({ told: "taken", sessionId, fencingToken, turnId, inputIds: this.#openInputIds.slice() });
    return true;
  }

  /** What a turn does whose store has failed: the rest is kept, and whoever has the session next brings it back. */
  async #spool(from: number, stepCount: number): Promise<void> {
    const { store, tell, random } = this.#deps;
    const { grant, turnId, isSpooled } = this.#start;
    const { sessionId, fencingToken } = grant;
    const hasEnd = random.unit() >= unendedShare;
    for (let step = from; step < stepCount; step++) {
      const entries = this.#entries(step);
      const isEnd = hasEnd && step === stepCount - 1;
      const settledInputIds = isEnd ? this.#openInputIds : [];
      const settledInputs = settledInputIds.map((inputId) => ({ inputId, end: "answered" as const }));
      const end = isEnd ? { end: { outcome: "answered" as const } } : {};
      await store.spool.keep({ grant, turnId, entries, settledInputs, ...end });
      const keys = entries.map(({ key }) => key);
      tell({ told: "kept", sessionId, fencingToken, turnId, keys, settledInputIds, isEnd });
    }
    // Its own release brings it back; or else the next grant, or the settlement of its holder.
    if (isSpooled || random.unit() < 0.5) this.#isAnswered("release", await store.leases.release(grant));
  }

  #entries(step: number): EntryDraft[] {
    const { random } = this.#deps;
    const callId = `${this.#start.turnId}.${step}`;
    const keys = stepKeys(callId, 2);
    const text = "x".repeat(Math.floor(random.unit() * textLengthMax));
    const bodies: readonly EntryDraft["body"][] = [
      {
        role: "assistant",
        parts: [
          { type: "text", text },
          { type: "tool-call", callId, name: "shell", input: null },
        ],
      },
      { role: "tool", callId, name: "shell", status: "ok", output: step },
    ];
    return bodies.map((body, index) => ({ key: keys[index] ?? "", body }));
  }

  async #append(step: number, settledInputIds: readonly string[]): Promise<boolean> {
    const { store, tell, workload } = this.#deps;
    const { grant, turnId } = this.#start;
    const entries = this.#entries(step);
    const keys = entries.map(({ key }) => key);
    const { sessionId, fencingToken } = grant;
    const acknowledge = (): void => tell({ told: "appended", sessionId, fencingToken, keys, settledInputIds });
    if (workload.mode === "early") acknowledge();
    const settledInputs = settledInputIds.map((inputId) => ({ inputId, end: "answered" as const }));
    const answer = await store.transcript.append({ grant, turnId, entries, settledInputs });
    if (!this.#isAnswered("append", answer)) return false;
    if (workload.mode !== "early") acknowledge();
    return true;
  }

  async #end(): Promise<void> {
    const { store, tell, random } = this.#deps;
    const { grant, turnId } = this.#start;
    const release = random.unit() < 0.5;
    const answer = await store.turns.end({ grant, turnId, outcome: "answered", release });
    if (!this.#isAnswered("end", answer)) return;
    const { sessionId, fencingToken } = grant;
    tell({ told: "ended", sessionId, fencingToken, turnId, inputIds: this.#openInputIds });
    if (!release) this.#isAnswered("release", await store.leases.release(grant));
  }

  /** Whether the grant stood, as it must: nobody takes it from a process that lives. */
  #isAnswered(attempt: string, { kind }: { readonly kind: string }): boolean {
    const isRefused = ["stale-token", "stale", "lost", "not-pending"].includes(kind);
    if (isRefused) this.#deps.tell({ told: "refused", sessionId: this.#start.grant.sessionId, attempt, answer: kind });
    return !isRefused;
  }
}
