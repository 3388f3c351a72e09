import { CodedError } from "@turnkeeper/kernel";
import { wantsTurn } from "@turnkeeper/state-store";
import type { StateStore, TakenInput } from "@turnkeeper/state-store";
import type { TurnScope } from "./turn-machinery.ts";
import { isStoreFailure } from "./turn-writer.ts";

/**
 * Live messages for a running turn. Each is in the inbox before anybody is told so; a turn takes it there and writes it
 * into the transcript in one step, before a request carries it. One that no turn took becomes a turn of its own, and
 * one that was taken ends with its turn: `answered` only where a request carried it.
 */
export class Steers {
  readonly #store: StateStore;
  readonly #scope: TurnScope;
  #undelivered: TakenInput[] = [];

  constructor(store: StateStore, scope: TurnScope) {
    this.#store = store;
    this.#scope = scope;
  }

  /** How many messages of people were taken and are in no request yet. */
  get undeliveredCount(): number {
    // What tells of a subagent's end stands in the transcript, and nobody can send it again.
    return this.#undelivered.filter(wantsTurn).length;
  }

  /** Asked with an answer in hand: its write is next, and that is where a store that fails must be met. */
  async areWaiting(): Promise<boolean> {
    try {
      return await this.#hasPending();
    } catch (error) {
      if (isStoreFailure(error)) return false;
      throw error;
    }
  }

  /** Takes all that wait, oldest first. Throws `LEASE_LOST` once another has the session. */
  async take(): Promise<readonly TakenInput[]> {
    const { grant, turnId, sessionId, clock, interrupt } = this.#scope;
    // A redirect queued its text there too, to cut the request short; what counts stands in the inbox.
    interrupt.takeSteers()?.deliver();
    if (!(await this.#hasPending())) return [];
    const taken = await this.#store.inbox.takeSteers(grant, turnId);
    if (taken.kind === "stale-token")
      throw new CodedError("LEASE_LOST", `Session ${sessionId} was taken over; this turn's writes are refused.`);
    if (taken.inputs.length > 0) clock.progress("steer");
    this.#undelivered.push(...taken.inputs);
    return taken.inputs;
  }

  /** A request leaves that carries all that were taken; answers which of them it is the first for. */
  deliver(): readonly TakenInput[] {
    const delivered = this.#undelivered;
    this.#undelivered = [];
    return delivered;
  }

  async #hasPending(): Promise<boolean> {
    const waiting = await this.#store.inbox.pending(this.#scope.sessionId);
    return waiting.some((input) => input.delivery === "steer" && input.runner === undefined);
  }
}
