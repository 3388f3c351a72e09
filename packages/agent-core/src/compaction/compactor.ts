import { replaceWithSummary } from "@turnkeeper/compression-fence";
import { CodedError } from "@turnkeeper/kernel";
import type { Host } from "@turnkeeper/kernel";
import type { ResolvedModel } from "@turnkeeper/models";
import type {
  CompactionHealth,
  CompactionHealthRequest,
  CompactionHealthResult,
  StateStore,
  SummaryBody,
  Usage,
} from "@turnkeeper/state-store";
import type { TurnEventBody } from "../events.ts";
import type { TurnScope } from "../turn-machinery.ts";
import { withKnownOutcome } from "../unknown-outcome.ts";
import { planCompaction } from "./compaction-plan.ts";
import type { CompactionPlan } from "./compaction-plan.ts";
import type { ContextLimits } from "./context-limits.ts";
import { fallbackSummary } from "./fallback-summary.ts";
import { afterFailure } from "./summary-failure.ts";
import type { SummaryFailure } from "./summary-failure.ts";
import { writeSummary } from "./summary-writer.ts";
import type { SummaryWriterSettings } from "./summary-writer.ts";

/** Why a compaction is wanted. Only `threshold` waits for a cool-down: the others cannot wait, or were asked for. */
export type CompactionCause = "threshold" | "overflow" | "manual";

/** Why none came of it now. */
export type DeferralReason =
  /** One failed lately; no model is asked before the cool-down is over. */
  | "cool-down"
  /** This one failed. */
  | "failed"
  /** The model does not answer at all at the moment. */
  | "unavailable"
  /** Too little could be replaced to make a difference. */
  | "infeasible"
  /** The last ones made no difference. */
  | "ineffective"
  /** The turn was stopped, and everything is as it was before. */
  | "stopped";

export type CompactionOutcome =
  | {
      readonly kind: "applied";
      readonly method: "model" | "fallback";
      /** How many entries the summary replaced. */
      readonly entryCount: number;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | {
      readonly kind: "deferred";
      readonly reason: DeferralReason;
      /** One line for people. */
      readonly detail: string;
      readonly retryInMs?: number;
    };

export interface CompactorDeps {
  readonly store: StateStore;
  readonly host: Host;
  readonly model: ResolvedModel;
  readonly emit: (event: TurnEventBody) => void;
  readonly onUsage: (usage: Usage) => void;
}

export interface CompactionRequestOptions {
  readonly cause: CompactionCause;
  /** How much less than usual stays word for word, 0 to `squeezeMax`. */
  readonly squeeze: number;
  /** No attempt follows this one: a summary made without a model is better than none. */
  readonly isLast: boolean;
  readonly usedTokens: number;
}

interface Summary {
  readonly body: SummaryBody;
  readonly method: "model" | "fallback";
  /** What is known of the session's summaries once this one is applied. */
  readonly health: CompactionHealth | undefined;
}

/** Two summaries in a row that hardly shortened anything: a third would not either, but where it promises much more. */
const thinCountMax = 2;
const effectiveShare = 0.1;
const promisingShare = 0.5;
/** A model that stalled twice is not waited for a third time. */
const stallCountMax = 2;

const excerptShare = 0.6;
const excerptTokensOfUnknownWindow = 120_000;

const diedMeanwhile: SummaryFailure = {
  kind: "stall",
  message: "The process that waited for the last summary ended before it came.",
};

/** There is nothing to apply: how it came out instead. */
class NoSummary extends Error {
  readonly outcome: CompactionOutcome;

  constructor(outcome: CompactionOutcome) {
    super("No summary came.");
    this.outcome = outcome;
  }
}

/**
 * Compacts one session's context inside a turn: reads a basis, has it summarised outside any lock, and puts the summary
 * in its place through the turn's fence (COMP-1, COMP-2). How attempts fare is stored with the session, before one
 * begins too: an attempt that never comes back counts as stalled, one that the turn's stop ends is taken back exactly.
 */
export class Compactor {
  readonly #deps: CompactorDeps;
  readonly #settings: SummaryWriterSettings;
  readonly #limits: ContextLimits;
  readonly #scope: TurnScope;

  constructor(deps: CompactorDeps, settings: SummaryWriterSettings, limits: ContextLimits, scope: TurnScope) {
    this.#deps = deps;
    this.#settings = settings;
    this.#limits = limits;
    this.#scope = scope;
  }

  /**
   * One compaction, with its events. Rejects with `LEASE_LOST` where another has the session, and with what the store
   * fails with; nothing was replaced then.
   */
  async compact(options: CompactionRequestOptions): Promise<CompactionOutcome> {
    const startedAtMs = this.#deps.host.clock.monotonicMs();
    const outcome = await this.#compact(options);
    const { cause } = options;
    if (outcome.kind === "applied") {
      const { kind: _kind, ...facts } = outcome;
      const durationMs = Math.round(this.#deps.host.clock.monotonicMs() - startedAtMs);
      this.#deps.emit({ type: "compaction.finished", cause, ...facts, durationMs });
    } else {
      const { kind: _kind, ...facts } = outcome;
      this.#deps.emit({ type: "compaction.deferred", cause, ...facts });
    }
    return outcome;
  }

  async #compact(options: CompactionRequestOptions): Promise<CompactionOutcome> {
    const { transcript } = this.#deps.store;
    const { sessionId } = this.#scope;
    const { cause, squeeze } = options;
    const { health, coolDownMs } = await transcript.compactionHealth(sessionId);
    if (cause === "threshold" && coolDownMs > 0) return coolingDown(health, coolDownMs);
    const plan = planCompaction(await transcript.load(sessionId), this.#limits, squeeze);
    // By hand it is done wherever there is anything to do: whoever asks for it has looked.
    if (plan === undefined || (cause !== "manual" && plan.gain < effectiveShare)) return infeasible;
    const isBroken = (health?.thinCount ?? 0) >= thinCountMax && plan.gain < promisingShare;
    if (cause !== "manual" && isBroken) return ineffective;
    this.#emitStarted(options, plan);
    try {
      return await this.#replace(options, plan, health);
    } catch (error) {
      if (error instanceof NoSummary) return error.outcome;
      throw error;
    }
  }

  async #replace(
    options: CompactionRequestOptions,
    plan: CompactionPlan,
    before: CompactionHealth | undefined,
  ): Promise<CompactionOutcome> {
    const { grant, turnId, fence } = this.#scope;
    let applied: Summary | undefined;
    const result = await replaceWithSummary(fence, {
      basis: plan.basis,
      summarise: () => this.#summarise(options, plan, before),
      apply: (basis, summary) => {
        applied = summary;
        const { body, health } = summary;
        const draft = { key: `${turnId}/summary/${basis.compactionCount + 1}`, body };
        const request = { grant, turnId, basis, summary: draft, ...(health ? { health } : {}) };
        return withKnownOutcome(this.#deps.host, () => this.#deps.store.transcript.applyCompaction(request));
      },
    });
    if (result.kind === "stale-token") throw this.#leaseLost();
    if (result.kind !== "applied" || applied === undefined) {
      await this.#setHealth(before);
      return stopped;
    }
    const { method, body } = applied;
    const { replaced, tokensBefore } = plan;
    return {
      kind: "applied",
      method,
      entryCount: replaced.length,
      tokensBefore,
      tokensAfter: plan.tokensAfter(body),
    };
  }

  /** A summary by the model, or where that fails and must not, without one. Rejects with `NoSummary`. */
  async #summarise(
    options: CompactionRequestOptions,
    plan: CompactionPlan,
    before: CompactionHealth | undefined,
  ): Promise<Summary> {
    // By hand everything is tried anew, whatever failed before.
    const base = options.cause === "manual" ? undefined : before;
    await this.#noteFailure(base, diedMeanwhile);
    const written = await writeSummary(
      this.#deps,
      this.#settings,
      this.#scope,
      plan.replaced,
      this.#excerptTokens(options),
    );
    if (written.kind === "stopped") {
      await this.#setHealth(before);
      if (CodedError.is(written.reason, "LEASE_LOST")) throw written.reason;
      throw new NoSummary(stopped);
    }
    if (written.kind === "written") {
      const body = plan.summaryBody(written.text);
      if (options.cause === "manual" || plan.tokensAfter(body) < plan.tokensBefore)
        return { body, method: "model", health: healthAfter(plan, body, base, undefined) };
    }
    const failure: SummaryFailure =
      written.kind === "failed"
        ? written.failure
        : { kind: "garbled", message: "The summary was no shorter than what it was to replace." };
    return this.#withoutModel(options, plan, { before, base, failure });
  }

  async #withoutModel(
    { isLast }: CompactionRequestOptions,
    plan: CompactionPlan,
    known: {
      readonly before: CompactionHealth | undefined;
      readonly base: CompactionHealth | undefined;
      readonly failure: SummaryFailure;
    },
  ): Promise<Summary> {
    const { before, base, failure } = known;
    // What was noted beforehand was a stall; another failure takes its place, with its own cool-down.
    if (failure.kind !== "stall") await this.#setHealth(before);
    const { health, coolDownMs } = await this.#noteFailure(base, failure);
    const mustGoOn = isLast && failure.kind !== "unavailable";
    const body = plan.summaryBody(fallbackSummary(plan.replaced));
    if ((mustGoOn || (health?.stallCount ?? 0) >= stallCountMax) && plan.tokensAfter(body) < plan.tokensBefore)
      return { body, method: "fallback", health: healthAfter(plan, body, base, health) };
    const reason = failure.kind === "unavailable" ? "unavailable" : "failed";
    throw new NoSummary({ kind: "deferred", reason, detail: failure.message, retryInMs: coolDownMs });
  }

  async #noteFailure(
    base: CompactionHealth | undefined,
    failure: SummaryFailure,
  ): Promise<{ readonly health: CompactionHealth | undefined; readonly coolDownMs: number }> {
    const { health, coolDownMs } = afterFailure(base, failure, this.#settings.contextTimeoutMs);
    const set = await this.#storeHealth({ health, coolDownMs });
    if (set.kind === "stale-token") throw this.#leaseLost();
    return { health: set.health, coolDownMs };
  }

  /** Puts back what was known before. Where another has the session by now, it is that one's to know. */
  async #setHealth(health: CompactionHealth | undefined): Promise<void> {
    await this.#storeHealth(health ? { health } : {});
  }

  #storeHealth(what: Omit<CompactionHealthRequest, "grant">): Promise<CompactionHealthResult> {
    const { host, store } = this.#deps;
    const request = { grant: this.#scope.grant, ...what };
    return withKnownOutcome(host, () => store.transcript.setCompactionHealth(request));
  }

  #excerptTokens({ cause, usedTokens }: CompactionRequestOptions): number {
    const { windowTokens } = this.#limits;
    const room = windowTokens === undefined ? excerptTokensOfUnknownWindow : windowTokens * excerptShare;
    // The provider has just proven that as much as was used is too much.
    return cause === "overflow" ? Math.min(room, usedTokens * excerptShare) : room;
  }

  #emitStarted({ cause, usedTokens }: CompactionRequestOptions, { replaced }: CompactionPlan): void {
    const { windowTokens } = this.#limits;
    const window = windowTokens === undefined ? {} : { windowTokens };
    this.#deps.emit({ type: "compaction.started", cause, entryCount: replaced.length, usedTokens, ...window });
  }

  #leaseLost(): CodedError {
    const { sessionId } = this.#scope;
    return new CodedError("LEASE_LOST", `Session ${sessionId} was taken over; this turn's writes are refused.`);
  }
}

const stopped: CompactionOutcome = Object.freeze({
  kind: "deferred",
  reason: "stopped",
  detail: "The turn was stopped; nothing was replaced.",
});

const infeasible: CompactionOutcome = Object.freeze({
  kind: "deferred",
  reason: "infeasible",
  detail: "There is too little in the conversation that a summary could replace.",
});

const ineffective: CompactionOutcome = Object.freeze({
  kind: "deferred",
  reason: "ineffective",
  detail: "The last summaries hardly shortened the conversation. Compact it by hand, or start a new session.",
});

function coolingDown(health: CompactionHealth | undefined, retryInMs: number): CompactionOutcome {
  const why = health?.error === undefined ? "" : ` ${health.error}`;
  const detail = `Paused after a summary that failed, and tried again in ${Math.ceil(retryInMs / 1000)} s.${why}`;
  return { kind: "deferred", reason: "cool-down", detail, retryInMs };
}

/** A summary of a model ends every cool-down, one without a model keeps it; one that made no difference is counted. */
function healthAfter(
  plan: CompactionPlan,
  body: SummaryBody,
  base: CompactionHealth | undefined,
  failed: CompactionHealth | undefined,
): CompactionHealth | undefined {
  const isThin = plan.tokensAfter(body) > plan.tokensBefore * (1 - effectiveShare);
  const thinCount = isThin ? (base?.thinCount ?? 0) + 1 : 0;
  if (failed) return { ...failed, thinCount };
  return isThin ? { stallCount: 0, outputCapCount: 0, thinCount } : undefined;
}
