import type { EntryBody, StateStore } from "@turnkeeper/state-store";
import type { ModelStep } from "../model-call.ts";
import type { TurnScope } from "../turn-machinery.ts";
import { squeezeMax } from "./compaction-plan.ts";
import { Compactor } from "./compactor.ts";
import type { CompactorDeps } from "./compactor.ts";
import { contextBodies } from "./context-bodies.ts";
import type { ContextLimits } from "./context-limits.ts";
import type { SummaryWriterSettings } from "./summary-writer.ts";

/** The conversation of a turn as the model is asked with it. */
export interface TurnContext {
  usedTokens(overheadTokens: () => number): number;
  replace(bodies: readonly EntryBody[]): void;
}

export interface TurnCompactionSettings extends SummaryWriterSettings {
  /** What goes with every request beside the conversation, by estimate. */
  readonly overheadTokens: () => number;
}

/** Attempts to shorten one request that its provider refused. */
const overflowAttemptsMax = 3;
/** What could not be shortened is looked at again when it has grown by so much. */
const growth = 1.1;

/** The provider refused the request as too long, or had no room left for a single word of an answer. */
function provesTooLong(failure: ModelStep["failure"], { hasOutput, finishReason }: ModelStep["reader"]): boolean {
  if (hasOutput) return false;
  return failure?.code === "MODEL_CONTEXT_OVERFLOW" || (failure?.code === "MODEL_EMPTY" && finishReason === "length");
}

/** When the compactions of one turn happen: at its checkpoints, and when a provider refuses a request as too long. */
export class TurnCompaction {
  readonly #store: StateStore;
  readonly #deps: CompactorDeps;
  readonly #settings: TurnCompactionSettings;
  readonly #limits: ContextLimits;
  readonly #scope: TurnScope;
  readonly #context: TurnContext;
  readonly #compactor: Compactor;
  /** Before both of these nothing is asked again: an answer that costs a look at the store does not change so soon. */
  #nextLook = { atMs: Number.NEGATIVE_INFINITY, tokens: 0 };
  #overflowAttempts = 0;
  #squeeze = 0;

  constructor(
    deps: CompactorDeps,
    settings: TurnCompactionSettings,
    limits: ContextLimits,
    scope: TurnScope,
    context: TurnContext,
  ) {
    this.#store = deps.store;
    this.#deps = deps;
    this.#settings = settings;
    this.#limits = limits;
    this.#scope = scope;
    this.#context = context;
    this.#compactor = new Compactor(deps, settings, limits, scope);
  }

  /** At a checkpoint: shortens the context where it has grown over the threshold. Deferred, the turn goes on as it is. */
  async whenDue(): Promise<void> {
    this.#overflowAttempts = 0;
    this.#squeeze = 0;
    const usedTokens = this.#usedTokens();
    if (usedTokens < this.#limits.thresholdTokens) return;
    const nowMs = this.#deps.host.clock.monotonicMs();
    if (nowMs < this.#nextLook.atMs || usedTokens < this.#nextLook.tokens) return;
    const outcome = await this.#compactor.compact({ cause: "threshold", squeeze: 0, isLast: false, usedTokens });
    if (outcome.kind === "applied") return this.#adopt();
    const { reason, retryInMs } = outcome;
    const atMs = retryInMs === undefined ? Number.NEGATIVE_INFINITY : nowMs + retryInMs;
    const tokens = reason === "ineffective" ? Number.POSITIVE_INFINITY : usedTokens * growth;
    this.#nextLook = { atMs, tokens: retryInMs === undefined ? tokens : 0 };
  }

  /**
   * After a model call: whether its provider proved the request too long and the context is shorter now, so that the
   * call may be made again. Bounded, with ever less kept word for word.
   */
  async mends({ failure, reader, stopped }: ModelStep): Promise<boolean> {
    if (stopped !== undefined || !provesTooLong(failure, reader)) return false;
    const usedTokens = this.#usedTokens();
    while (this.#overflowAttempts < overflowAttemptsMax && this.#squeeze <= squeezeMax) {
      this.#overflowAttempts++;
      const isLast = this.#overflowAttempts === overflowAttemptsMax;
      const squeeze = this.#squeeze;
      const outcome = await this.#compactor.compact({ cause: "overflow", squeeze, isLast, usedTokens });
      this.#scope.interrupt.signal.throwIfAborted();
      if (outcome.kind === "applied" || outcome.reason === "infeasible") this.#squeeze++;
      if (outcome.kind === "applied") {
        await this.#adopt();
        return true;
      }
      if (outcome.reason !== "failed" && outcome.reason !== "infeasible") return false;
    }
    return false;
  }

  #usedTokens(): number {
    return this.#context.usedTokens(this.#settings.overheadTokens);
  }

  /** What the store has now is the context: the summary, and everything behind its basis, whoever wrote it when. */
  async #adopt(): Promise<void> {
    const { entries } = await this.#store.transcript.load(this.#scope.sessionId);
    this.#context.replace(contextBodies(entries));
  }
}
