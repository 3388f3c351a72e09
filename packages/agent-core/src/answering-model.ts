import type { LanguageModelV3CallOptions, LanguageModelV3FunctionTool } from "@ai-sdk/provider";
import type { Host } from "@turnkeeper/kernel";
import { cacheScope } from "@turnkeeper/models";
import type { CacheConversation, ResolvedModel } from "@turnkeeper/models";
import type { StateStore, Usage } from "@turnkeeper/state-store";
import { contextLimits } from "./compaction/context-limits.ts";
import { overheadTokens } from "./compaction/token-estimate.ts";
import { TurnCompaction } from "./compaction/turn-compaction.ts";
import type { ModelSettings } from "./call-settings.ts";
import type { Conversation } from "./conversation.ts";
import { reportDefect } from "./defect.ts";
import type { TurnEventBody } from "./events.ts";
import { callModel } from "./model-call.ts";
import type { EndedModelCall, ModelStep } from "./model-call.ts";
import type { ModelCallReport } from "./model-call-report.ts";
import type { StepEvent } from "./step-reader.ts";
import type { Steers } from "./steers.ts";
import { declarationOf } from "./tool-input.ts";
import type { ToolSet } from "./tool-input.ts";
import type { TurnScope } from "./turn-machinery.ts";

export interface AnsweringModelDeps {
  readonly store: StateStore;
  readonly host: Host;
  /** The chosen one. */
  readonly model: ResolvedModel;
  readonly tools: ToolSet;
  readonly steers: Steers;
  readonly emit: (event: TurnEventBody) => void;
  readonly onUsage: (usage: Usage) => void;
  readonly onModelCall: (call: ModelCallReport) => void;
}

export interface AnsweringModelSettings {
  readonly system: string | undefined;
  readonly modelAttempts: number;
  readonly silenceMs: number;
  readonly model: ModelSettings;
  readonly conversationOf: ((sessionId: string) => CacheConversation["declared"]) | undefined;
  readonly compaction: { readonly threshold: number | undefined; readonly contextTimeoutMs: number };
}

export interface WantedStep {
  /** The turn's first, whoever ran it. */
  readonly isFirst: boolean;
  /** It is to be the rest of an answer, which nobody else can give. */
  readonly isGoingOn: boolean;
}

/**
 * The model that answers a turn: the chosen one, until a fallback takes its place for the rest of the turn. What it is
 * asked with is shortened to what it can take.
 */
export class AnsweringModel {
  readonly #deps: AnsweringModelDeps;
  readonly #settings: AnsweringModelSettings;
  readonly #scope: TurnScope;
  readonly #conversation: Conversation;
  readonly #declarations: LanguageModelV3FunctionTool[];
  readonly #cacheScope: string;
  #model: ResolvedModel;
  #compaction: TurnCompaction;

  constructor(
    deps: AnsweringModelDeps,
    settings: AnsweringModelSettings,
    scope: TurnScope,
    conversation: Conversation,
  ) {
    this.#deps = deps;
    this.#settings = settings;
    this.#scope = scope;
    this.#conversation = conversation;
    this.#declarations = [...deps.tools.values()].map(declarationOf);
    this.#model = deps.model;
    this.#cacheScope = this.#findCacheScope();
    this.#compaction = this.#makeCompaction();
  }

  get id(): string {
    return this.#model.id;
  }

  /** The turn's next step. What the model does or fails to do is in it; rejects with what ends the turn at once. */
  async step(wanted: WantedStep): Promise<ModelStep> {
    await this.#compaction.whenDue();
    let step = await this.#ask(wanted);
    while ((await this.#compaction.mends(step)) || this.#fallsBack(step, wanted)) step = await this.#ask(wanted);
    return step;
  }

  /** A declaration that fails must not fail the turn, nor share a cache with what it might have meant. */
  #findCacheScope(): string {
    const { sessionId } = this.#scope;
    try {
      return cacheScope({ sessionId, declared: this.#settings.conversationOf?.(sessionId) });
    } catch (error) {
      reportDefect(error);
      return cacheScope({ sessionId });
    }
  }

  #makeCompaction(): TurnCompaction {
    const { system = "", modelAttempts, compaction } = this.#settings;
    return new TurnCompaction(
      { ...this.#deps, model: this.#model },
      {
        contextTimeoutMs: compaction.contextTimeoutMs,
        modelAttempts,
        overheadTokens: () => overheadTokens(system, this.#declarations),
      },
      contextLimits(this.#model.contextWindowTokens, compaction.threshold),
      this.#scope,
      this.#conversation,
    );
  }

  async #ask(wanted: WantedStep): Promise<ModelStep> {
    const { host, emit, steers, onUsage } = this.#deps;
    const { silenceMs } = this.#settings;
    const model = this.#model;
    const { clock, interrupt } = this.#scope;
    const request: LanguageModelV3CallOptions = {
      ...this.#modelSettings(wanted),
      prompt: this.#conversation.prompt(this.#settings.system),
      ...(this.#declarations.length > 0 ? { tools: this.#declarations } : {}),
      providerOptions: { turnkeeper: { cacheScope: this.#cacheScope } },
    };
    // A redirect cuts this request short, and nothing else of the turn.
    using phase = interrupt.enterPhase("model-request");
    const step = await callModel(
      {
        host,
        clock,
        model,
        signal: phase.signal,
        beforeSideEffect: async () => {
          await this.#scope.beforeSideEffect();
          phase.signal.throwIfAborted();
          for (const { inputId, child } of steers.deliver())
            emit({ type: "steer.delivered", inputId, ...(child ? { childSessionId: child.sessionId } : {}) });
        },
        onEvent: (event) => this.#emitStepEvent(event),
        onEnded: (call) => this.#reportCall(model, call),
        onRetry: ({ attempt, delayMs, failure }) =>
          emit({ type: "model.retry", attempt, delayMs: Math.round(delayMs), reason: failure.message }),
      },
      {
        attempts: this.#settings.modelAttempts,
        silenceMs: model === this.#deps.model ? silenceMs : (model.silenceMs ?? silenceMs),
      },
      request,
    );
    if (step.reader.usage) onUsage(step.reader.usage);
    return step;
  }

  /** A call that is forced once would be forced for ever: what follows the first step may answer. */
  #modelSettings({ isFirst }: WantedStep): ModelSettings {
    const { toolChoice, ...model } = this.#settings.model;
    if (toolChoice === undefined || this.#declarations.length === 0) return model;
    const isForced = toolChoice.type === "required" || toolChoice.type === "tool";
    return isForced && !isFirst ? model : { ...model, toolChoice };
  }

  /**
   * Whether another model answers in the place of one that cannot, for the rest of the turn. Only before anything of the
   * answer was seen: two models' halves are no answer.
   */
  #fallsBack({ failure, reader, stopped }: ModelStep, { isGoingOn }: WantedStep): boolean {
    const { id: from, fallback } = this.#model;
    if (!fallback || !failure?.isOfRoute || stopped !== undefined) return false;
    if (reader.hasOutput || isGoingOn) return false;
    this.#deps.emit({ type: "model.fallback", from, to: fallback.id, reason: failure.message });
    this.#model = fallback;
    this.#conversation.addressTo(fallback.id);
    this.#compaction = this.#makeCompaction();
    return true;
  }

  #emitStepEvent(event: StepEvent): void {
    if (event.kind === "text") this.#deps.emit({ type: "text.delta", text: event.delta });
    else if (event.kind === "reasoning") this.#deps.emit({ type: "reasoning.delta", text: event.delta });
  }

  #reportCall({ id: model }: ResolvedModel, { startedAtMs, firstOutputMs, step }: EndedModelCall): void {
    const { sessionId, turnId } = this.#scope;
    const { reader, failure, stopped } = step;
    const { finishReason, usage } = reader;
    this.#deps.onModelCall({
      sessionId,
      turnId,
      model,
      startedAtMs,
      endedAtMs: this.#deps.host.clock.wallMs(),
      ...(firstOutputMs === undefined ? {} : { firstOutputMs }),
      ...(finishReason === undefined ? {} : { finishReason }),
      ...(usage === undefined ? {} : { usage }),
      ...(failure ? { failure: failure.code } : stopped === undefined ? {} : { failure: "stopped" }),
    });
  }
}
